// Does in a real browser what it is told, line by line on its input: `open URL FRAGMENT…` opens the example page of the
// gateway at that address, once for each of the fragments, and says what they show when all are connected or refused;
// `end` closes them. `close N` closes the tab of that number, `shot N PATH` takes a picture of it, `seen N` prints what
// it shows and `heads N` what stands above each message, `listed N` its conversations, `asked N` waits until a person is
// to answer and `unasked N` until nobody is, `type N WORDS` answers, `broken N` breaks its connection, `run N CODE` runs
// code in it. Prints a line of JSON after each command.
import { createInterface } from "node:readline";
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

const browser = await puppeteer.launch({
  executablePath: await chromium.executablePath(),
  headless: "shell",
  args: chromium.args.filter((flag) => !/web-security|site-isolation/.test(flag)),
  defaultViewport: { width: 1100, height: 760 },
});
let pages = [];
let problems = [];
const state = (page) => page.$eval("#state", ({ textContent }) => textContent);

async function open(base, ...fragments) {
  pages = [];
  problems = [];
  for (const fragment of fragments) {
    const page = await browser.newPage();
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
    await page.goto(`${base}/bridge/example#${fragment}`);
    await page.waitForSelector("#state.open, #state.closed");
    pages.push(page);
  }
  return Promise.all(pages.map(state));
}

const say = (value) => console.log(JSON.stringify(value));

const commands = {
  close: (page) => page.close(),
  shot: (page, path) => page.screenshot({ path }),
  seen: (page) => page.$$eval("article", (all) => all.map(({ className, textContent }) => [className, textContent])),
  heads: (page) => page.$$eval("article", (all) => all.map(({ dataset }) => dataset.who)),
  listed: (page) => page.$$eval("nav button", (all) => all.map(({ textContent }) => textContent)),
  asked: (page) => page.waitForSelector("textarea").then(() => null),
  unasked: (page) => page.waitForSelector("textarea", { hidden: true }).then(() => null),
  run: (page, ...code) => page.evaluate(code.join(" ")).then(() => null),
  broken: (page) => page.evaluate(() => bridge.socket.close(4000)), // not a goodbye: it comes back by itself
  type: (page, ...words) => page.type("textarea", words.join(" ")).then(() => page.click("form button")),
};

for await (const line of createInterface({ input: process.stdin })) {
  const [command, first, ...rest] = line.split(" ");
  let said;
  if (command === "open") said = await open(first, ...rest);
  else if (command === "end") for (const page of pages) page.isClosed() || (await page.close());
  else said = await commands[command](pages[Number(first)], ...rest);
  say({ said: said ?? null, problems });
}
await browser.close();
process.exit(0);

// A page in a real browser asks the gateway, as Obsidian's plugins do: the browser sends the preflight, with the headers
// that openai-node adds, and decides what the page may read. Called with the gateway's address, a model, and the ports
// of two origins; prints what a page of each origin got.
import { createServer } from "node:http";
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

const [base, model, ...ports] = process.argv.slice(2);

// Runs in the page.
async function ask(base, model, question) {
  const headers = { authorization: "Bearer sk-fake", "content-type": "application/json" };
  for (const name of ["arch", "lang", "os", "package-version", "retry-count", "runtime", "runtime-version"])
    headers[`x-stainless-${name}`] = "0";
  try {
    const body = JSON.stringify({ model, stream: true, messages: [{ role: "user", content: question }] });
    const response = await fetch(`${base}/v1/chat/completions`, { method: "POST", headers, body });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let pieces = 0;
    let text = "";
    for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
      pieces += 1;
      text += value;
    }
    const refused = await fetch(`${base}/v1/chat/completions`, { method: "POST", headers, body: "{}" });
    return { status: response.status, pieces, text, refused: refused.status, id: response.headers.get("x-request-id") };
  } catch (error) {
    return { error: String(error) };
  }
}

const browser = await puppeteer.launch({
  executablePath: await chromium.executablePath(),
  headless: "shell",
  // The package's defaults switch off the rules that are tested here.
  args: chromium.args.filter((flag) => !/web-security|site-isolation/.test(flag)),
});
const seen = {};
for (const port of ports) {
  const server = createServer((_, reply) => reply.setHeader("content-type", "text/html").end("<title>page</title>"));
  await new Promise((ready) => server.listen(Number(port), "127.0.0.1", ready));
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${port}/`);
  seen[port] = await page.evaluate(ask, base, model, "Hello");
  server.close();
}
console.log(JSON.stringify({ version: await browser.version(), seen }));
await browser.close();
process.exit(0);

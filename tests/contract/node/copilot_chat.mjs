// VS Code Copilot Chat: see copilot.mjs.
import { said, turn } from "./copilot.mjs";
import { ask, base, chatTool, forecast, key, modes, question } from "./weather.mjs";

const [wire] = modes;

await ask(async (model) => {
  const where = { base, key, wire, model };
  const messages = [said.user(question)];
  const first = await turn(where, messages, [chatTool]);
  messages.push(said.assistant(first));
  for (const call of first.calls) messages.push(said.result(call, forecast(JSON.parse(call.arguments))));
  const last = await turn(where, messages, [chatTool]);
  const calls = first.calls.map((call) => ({ name: call.name, arguments: JSON.parse(call.arguments) }));
  return { text: first.text, calls, answer: last.text };
});

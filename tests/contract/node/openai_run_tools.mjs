// openai-node's own loop: the strictest reader of chat streams (it wants role, index, type and finish_reason).
import OpenAI from "openai";
import { ask, base, description, forecast, key, modes, name, question, schema } from "./weather.mjs";

const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: key, maxRetries: 0 });

await ask(async (model) => {
  const calls = [];
  const texts = [];
  const runner = client.chat.completions.runTools({
    model,
    stream: modes.includes("stream"),
    messages: [{ role: "user", content: question }],
    tools: [
      {
        type: "function",
        function: {
          name,
          description,
          parameters: schema,
          parse: JSON.parse,
          function: (args) => {
            calls.push({ name, arguments: args });
            return forecast(args);
          },
        },
      },
    ],
  });
  runner.on("message", (message) => {
    if (message.role === "assistant") texts.push(message.content ?? "");
  });
  const answer = await runner.finalContent();
  return { text: texts[0], calls, answer };
});

// The AI SDK's loop over each of its three providers: what opencode, Kilo Code and Cline 3 are built on.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { ask, base, description, forecast, key, modes, name, question, schema } from "./weather.mjs";

const options = { baseURL: `${base}/v1`, apiKey: key };
const providers = {
  chat: (model) => createOpenAICompatible({ name: "gateway", includeUsage: true, ...options })(model),
  responses: (model) => createOpenAI(options).responses(model),
  messages: (model) => createAnthropic(options)(model),
};
const [wire, mode] = modes;

await ask(async (model) => {
  const request = {
    model: providers[wire](model),
    prompt: question,
    maxRetries: 0,
    stopWhen: stepCountIs(4),
    tools: { [name]: tool({ description, inputSchema: jsonSchema(schema), execute: forecast }) },
  };
  let failure;
  const result =
    mode === "stream"
      ? streamText({ ...request, onError: ({ error }) => (failure ??= error) })
      : await generateText(request);
  const steps = await Promise.resolve(result.steps).catch((error) => {
    throw failure ?? error;
  });
  if (failure) throw failure;
  return {
    text: steps[0].text,
    calls: steps.flatMap((step) => step.toolCalls.map((call) => ({ name: call.toolName, arguments: call.input }))),
    answer: steps.at(-1).text,
    finish: steps.map((step) => step.finishReason),
    usage: (await result.usage).outputTokens > 0,
  };
});

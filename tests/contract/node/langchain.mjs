// Obsidian Copilot's loop (4.0.2, AutonomousAgentChainRunner): bindTools, then stream. Chunks of a call are joined by
// `index ?? 0`, names by appending, and a call without an id gets one.
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import { ask, base, chatTool, forecast, key, modes, question } from "./weather.mjs";

const [wire] = modes;

async function turn(llm, messages) {
  let text = "";
  const calls = new Map();
  for await (const chunk of await llm.stream(messages)) {
    text += chunk.text;
    for (const piece of chunk.tool_call_chunks ?? []) {
      const call = calls.get(piece.index ?? 0) ?? { id: "", name: "", args: "" };
      call.id ||= piece.id ?? "";
      call.name += piece.name ?? "";
      call.args += piece.args ?? "";
      calls.set(piece.index ?? 0, call);
    }
  }
  return { text, calls: [...calls.values()].map((call) => ({ ...call, args: JSON.parse(call.args) })) };
}

await ask(async (model) => {
  const llm = new ChatOpenAI({
    model,
    apiKey: key,
    streamUsage: false,
    maxRetries: 0,
    useResponsesApi: wire === "responses",
    configuration: { baseURL: `${base}/v1` },
  }).bindTools([chatTool]);
  const messages = [new HumanMessage(question)];
  const first = await turn(llm, messages);
  messages.push(new AIMessage({ content: first.text, tool_calls: first.calls }));
  for (const call of first.calls)
    messages.push(new ToolMessage({ content: forecast(call.args), tool_call_id: call.id, name: call.name }));
  const last = await turn(llm, messages);
  const calls = first.calls.map((call) => ({ name: call.name, arguments: call.args }));
  return { text: first.text, calls, answer: last.text };
});

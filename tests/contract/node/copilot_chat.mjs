// VS Code Copilot Chat's own HTTP client and stream reader for custom endpoints, out of @vscode/chat-lib. The services of
// the editor that they are given here do nothing, except the one that fetches and those that hold the defaults.
import { createRequire } from "node:module";
import { ask, base, chatTool, forecast, key, modes, question } from "./weather.mjs";

const require = createRequire(import.meta.url);
const part = (path) => require(`@vscode/chat-lib/dist/src/_internal/${path}.js`);

const { OpenAIEndpoint } = part("extension/byok/node/openAIEndpoint");
const { ChatMLFetcherImpl } = part("extension/prompt/node/chatMLFetcher");
const { ChatLocation } = part("platform/chat/common/commonTypes");
const { DefaultsOnlyConfigurationService } = part("platform/configuration/common/defaultsOnlyConfigurationService");
const { Response, IFetcherService } = part("platform/networking/common/fetcherService");
const { NoopOTelService } = part("platform/otel/common/noopOtelService");
const { resolveOTelConfig } = part("platform/otel/common/otelConfig");
const { NullRequestLogger } = part("platform/requestLogger/node/nullRequestLogger");
const { NullExperimentationService } = part("platform/telemetry/common/nullExperimentationService");
const { CancellationToken } = part("util/vs/base/common/cancellation");
const { Raw } = require("@vscode/prompt-tsx");

// Answers every call and every property with itself, and is nothing to wait for.
const silent = new Proxy(function () {}, {
  get: (_, name) => (name === "then" || typeof name === "symbol" ? undefined : silent),
  apply: () => silent,
  construct: () => silent,
});

const interaction = { interactionId: "contract" };
const signedOut = { getCopilotToken: async () => undefined, copilotToken: undefined };

const fetcher = {
  makeAbortController: () => new AbortController(),
  isAbortError: (error) => error?.name === "AbortError",
  isInternetDisconnectedError: () => false,
  isNetworkProcessCrashedError: () => false,
  isFetcherError: () => true,
  getUserMessageForFetcherError: (error) => error?.message,
  getUserAgentLibrary: () => "node-fetch",
  disconnectAll: async () => undefined,
  onDidFetch: () => ({ dispose() {} }),
  async fetch(url, { method, headers, json, signal }) {
    const options = { method, headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(json) };
    const reply = await fetch(url, { ...options, signal });
    return new Response(reply.status, reply.statusText, reply.headers, reply.body, "node-fetch", () => {}, "", "");
  },
};

const paths = { chat: "/chat/completions", responses: "/responses", messages: "/v1/messages" };
const [wire] = modes;

// What the extension makes of an entry of chatLanguageModels.json.
const metadata = (model) => ({
  id: model,
  name: model,
  vendor: "customendpoint",
  version: "1",
  model_picker_enabled: true,
  is_chat_default: false,
  is_chat_fallback: false,
  supported_endpoints: [paths[wire]],
  capabilities: {
    type: "chat",
    family: model,
    tokenizer: "o200k_base",
    limits: { max_context_window_tokens: 128000, max_prompt_tokens: 112000, max_output_tokens: 16000 },
    supports: { parallel_tool_calls: true, streaming: true, tool_calls: true, vision: false, thinking: false },
  },
});

function endpoint(model) {
  const configuration = new DefaultsOnlyConfigurationService();
  const experiments = new NullExperimentationService();
  const instantiation = {
    invokeFunction: (run, ...args) => run({ get: (id) => (id === IFetcherService ? fetcher : silent) }, ...args),
    createInstance: (Class, ...args) => new Class(...args),
  };
  const otel = new NoopOTelService(resolveOTelConfig({ env: {}, extensionVersion: "0", sessionId: "0" }));
  // fetcher, telemetry, request log, log, sign-in, interaction, quota, GitHub's API, options, …
  const client = new ChatMLFetcherImpl(
    fetcher, silent, new NullRequestLogger(), silent, signedOut, interaction, silent, silent, {}, configuration,
    experiments, silent, instantiation, silent, otel,
  );
  const tokenizer = { acquireTokenizer: () => ({ countMessagesTokens: async () => 1, tokenLength: async () => 1 }) };
  return new OpenAIEndpoint(
    metadata(model), key, `${base}/v1${paths[wire].replace("/v1", "")}`, silent, client, tokenizer, instantiation,
    configuration, experiments, silent, silent,
  );
}

async function turn(model, messages) {
  const calls = [];
  let text = "";
  const response = await endpoint(model).makeChatRequest2(
    {
      debugName: "contract",
      messages,
      location: ChatLocation.Agent,
      requestOptions: { tools: [chatTool] },
      finishedCb: async (_text, _index, delta) => {
        text += delta.text ?? "";
        calls.push(...(delta.copilotToolCalls ?? []));
        return undefined;
      },
    },
    CancellationToken.None,
  );
  if (response.type !== "success") throw new Error(`${response.type}: ${response.reason}`);
  return { text, calls };
}

const said = (role, text, more) => ({ role, content: [{ type: Raw.ChatCompletionContentPartKind.Text, text }], ...more });

await ask(async (model) => {
  const messages = [said(Raw.ChatRole.User, question)];
  const first = await turn(model, messages);
  const toolCalls = first.calls.map((call) => ({
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: call.arguments },
  }));
  messages.push(said(Raw.ChatRole.Assistant, first.text, { toolCalls }));
  for (const call of first.calls)
    messages.push(said(Raw.ChatRole.Tool, forecast(JSON.parse(call.arguments)), { toolCallId: call.id }));
  const last = await turn(model, messages);
  const calls = first.calls.map((call) => ({ name: call.name, arguments: JSON.parse(call.arguments) }));
  return { text: first.text, calls, answer: last.text };
});

// VS Code Copilot Chat's own HTTP client and stream reader for custom endpoints, out of @vscode/chat-lib. The services of
// the editor that they are given here do nothing, except the one that fetches and those that hold the defaults.
// `turn` is one request and its answer, `said` writes the messages of it.
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const part = (path) => require(`@vscode/chat-lib/dist/src/_internal/${path}.js`);

const { OpenAIEndpoint } = part("extension/byok/node/openAIEndpoint");
const { ChatMLFetcherImpl } = part("extension/prompt/node/chatMLFetcher");
const { ChatLocation } = part("platform/chat/common/commonTypes");
const { DefaultsOnlyConfigurationService } = part("platform/configuration/common/defaultsOnlyConfigurationService");
const { Response, IFetcherService } = part("platform/networking/common/fetcherService");
const { userAgentLibraryHeader } = part("platform/networking/common/networking");
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

// Every request that was sent: the names of its headers, and its body.
export const requests = [];

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
    requests.push({ headers: Object.keys(headers).map((name) => name.toLowerCase()), body: json });
    // The first two are what the editor's own fetchers add (0.42 and 0.66, measured).
    const added = { "User-Agent": "GitHubCopilotChat/0.66.0", [userAgentLibraryHeader]: "node-fetch" };
    const all = { ...added, "Content-Type": "application/json", ...headers };
    const reply = await fetch(url, { method, headers: all, body: JSON.stringify(json), signal });
    return new Response(reply.status, reply.statusText, reply.headers, reply.body, "node-fetch", () => {}, "", "");
  },
};

const paths = { chat: "/chat/completions", responses: "/responses", messages: "/v1/messages" };

// What the extension makes of an entry of chatLanguageModels.json.
const metadata = (model, wire) => ({
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

function endpoint({ base, key, wire, model }) {
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
    metadata(model, wire), key, `${base}/v1${paths[wire].replace("/v1", "")}`, silent, client, tokenizer, instantiation,
    configuration, experiments, silent, silent,
  );
}

// One turn: `text`, `calls`, and `events`, what the stream reader told the extension, in order.
export async function turn(where, messages, tools) {
  const events = [];
  const response = await endpoint(where).makeChatRequest2(
    {
      debugName: "contract",
      messages,
      location: ChatLocation.Agent,
      requestOptions: { tools },
      finishedCb: async (_text, _index, delta) => {
        if (delta.text) events.push({ text: delta.text });
        if (delta.beginToolCalls) events.push({ begin: delta.beginToolCalls.map((call) => call.name) });
        if (delta.copilotToolCalls) events.push({ calls: delta.copilotToolCalls });
        return undefined;
      },
    },
    CancellationToken.None,
  );
  if (response.type !== "success") throw new Error(`${response.type}: ${response.reason}`);
  const text = events.map((event) => event.text ?? "").join("");
  return { text, calls: events.flatMap((event) => event.calls ?? []), events };
}

const message = (role, text, more) => ({
  role,
  content: [{ type: Raw.ChatCompletionContentPartKind.Text, text }],
  ...more,
});

export const said = {
  system: (text) => message(Raw.ChatRole.System, text),
  user: (text) => message(Raw.ChatRole.User, text),
  assistant: ({ text, calls }) =>
    message(Raw.ChatRole.Assistant, text, {
      toolCalls: calls.map(({ id, name, arguments: args }) => ({ id, type: "function", function: { name, arguments: args } })),
    }),
  result: (call, text) => message(Raw.ChatRole.Tool, text, { toolCallId: call.id }),
};

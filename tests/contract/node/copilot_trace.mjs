// VS Code Copilot Chat through a whole tool loop. Called with the gateway's address, a model and a trace as JSON: the
// messages to begin with (role and text), the tools, and what each of them returns. Prints a line of JSON for each
// round: the request as it was sent, and what the client made of the answer.
import { requests, said, turn } from "./copilot.mjs";

const [base, model, trace] = process.argv.slice(2);
const { messages, tools, results } = JSON.parse(trace);
const history = messages.map(([role, text]) => said[role](text));

for (let calls; calls === undefined || calls.length; ) {
  const answer = await turn({ base, key: "sk-fake", wire: "chat", model }, history, tools);
  console.log(JSON.stringify({ sent: requests.at(-1), ...answer }));
  calls = answer.calls;
  history.push(said.assistant(answer));
  // The extension parses the arguments, runs the tool and puts its result into the conversation.
  for (const call of calls) if (JSON.parse(call.arguments)) history.push(said.result(call, results[call.name]));
}

// The task that every client library gets: one tool, one question. A script is called with the gateway's address, the
// models to ask, separated by commas, and what else it wants to know. For each model it prints one line of JSON: `text`
// (shown before the calls), `calls` (with arguments as the client understood them) and `answer`, or `error`.

const [address, models, ...rest] = process.argv.slice(2);
export const base = address;
export const modes = rest;
export const key = "sk-fake";
export const question = "What is the weather in Oslo?";
export const name = "get_weather";
export const description = "The weather of the next days.";
export const schema = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
  required: ["city", "days"],
  additionalProperties: false,
};

export const forecast = ({ city, days }) => `${days} cold days in ${city}`;

export const chatTool = { type: "function", function: { name, description, parameters: schema } };

// What goes wrong is what some tests ask about: an error is something to report, too.
export async function ask(run) {
  for (const model of models.split(",")) {
    const seen = await run(model).catch((error) => ({ error: error?.message ?? String(error) }));
    console.log(JSON.stringify({ model, ...seen }));
  }
}

// The official TypeScript client lists and calls every tool, as an agent would. Argument: the way in.

import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const { ZENO, ZENO_FOLDER: folder, ZENO_HOME, ZENO_MODULES, ZENO_TOKEN, ZENO_URL, HOME, PATH } = process.env;
const from = createRequire(path.join(ZENO_MODULES, "x.js"));
const sdk = (name) => import(pathToFileURL(from.resolve(`@modelcontextprotocol/sdk/${name}`)));
const { Client } = await sdk("client/index.js");
const { StdioClientTransport } = await sdk("client/stdio.js");
const { StreamableHTTPClientTransport } = await sdk("client/streamableHttp.js");
const { ElicitRequestSchema } = await sdk("types.js");

const way = process.argv[2];
const asked = [];
const client = new Client({ name: "test", version: "1" }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, (request) => {
  asked.push(request.params.message);
  const fields = Object.keys(request.params.requestedSchema.properties);
  return { action: "accept", content: Object.fromEntries(fields.map((field) => [field, true])) };
});
await client.connect(
  way === "stdio"
    ? new StdioClientTransport({ command: ZENO, args: ["mcp"], env: { HOME, PATH, ZENO_HOME }, cwd: folder })
    : new StreamableHTTPClientTransport(new URL(ZENO_URL), {
        requestInit: { headers: { authorization: `Bearer ${ZENO_TOKEN}` } },
      }),
);

const called = new Set();
const told = [];
const call = async (name, args) => {
  called.add(name);
  const options = { onprogress: (progress) => told.push(progress), timeout: 120_000 };
  return client.callTool({ name, arguments: args }, undefined, options);
};
const ok = async (name, args = {}) => {
  const result = await call(name, args);
  assert(!result.isError, `${name}: ${result.content[0].text}`);
  return { ...result.structuredContent, shown: result.content[0].text };
};
const refused = async (name, args) => {
  const result = await call(name, args);
  assert(result.isError, `${name}: ${result.content[0].text}`);
  return { ...result.structuredContent.problem, shown: result.content[0].text };
};

const { tools } = await client.listTools();
const names = tools.map((tool) => tool.name);
assert.deepEqual(names, [...names].sort());

const ran = await ok("sandbox_run", { command: "pwd; exit 3", folder });
assert.equal(ran.exit_code, 3);
assert.equal(ran.output.trim(), folder);

const box = (await ok("sandbox_create", { folder, limits: { ttl: "1h" } })).sandbox.id;
assert((await ok("sandbox_list")).sandboxes.some((sandbox) => sandbox.id === box));
assert.equal((await ok("sandbox_status", { sandbox: box })).sandbox.workspace, folder);
await ok("sandbox_write", { sandbox: box, path: "new.txt", content: "one\ntwo\n" });
await ok("sandbox_edit", { sandbox: box, path: "new.txt", search: "two", replace: "2" });
assert.equal((await ok("sandbox_read", { sandbox: box, path: "new.txt" })).content, "one\n2\n");
assert((await ok("sandbox_files", { sandbox: box })).entries.some((entry) => entry.name === "new.txt"));
const exec = await ok("sandbox_exec", { sandbox: box, command: "rm readme; echo $A", env: { A: "b" } });
assert.equal(exec.output, "b\n");
assert.equal((await ok("sandbox_output", { sandbox: box, exec: exec.exec })).output, "b\n");
const diff = await ok("sandbox_diff", { sandbox: box });
assert.deepEqual(diff.workspace.map((change) => change.path).sort(), ["new.txt", "readme"]);
const { id: snapshot } = (await ok("sandbox_snapshot", { sandbox: box })).snapshot;
assert.equal((await ok("sandbox_fork", { sandbox: box })).forks.length, 1);
await ok("sandbox_rollback", { sandbox: box, snapshot });
assert.equal((await ok("sandbox_verify", { sandbox: box, commands: ["test -e new.txt"] })).outcome, "pass");
const candidates = [{ name: "one", command: "true" }];
assert.equal((await ok("sandbox_race", { from: box, candidates, commands: ["true"] })).winner, "one");
assert(told.length > 0 && told.every((progress) => progress.message), "no progress was told");
assert.deepEqual((await ok("network_requests", { sandbox: box })).requests, []);
if (way === "http") {
  assert.equal((await refused("sandbox_promote", { sandbox: box })).code, "refused");
  assert(fs.existsSync(`${folder}/readme`));
} else {
  assert.match((await ok("sandbox_promote", { sandbox: box })).shown, /^Promoted\./);
  assert.equal(asked.length, 1);
  assert(!fs.existsSync(`${folder}/readme`) && fs.existsSync(`${folder}/new.txt`));
}
await ok("sandbox_destroy", { sandbox: box });
assert.equal((await refused("sandbox_status", { sandbox: box + "x" })).code, "not_found");
assert.deepEqual([...called].sort(), names);

const { resources } = await client.listResources();
assert((await client.readResource({ uri: resources[0].uri })).contents.length === 1);
const { prompts } = await client.listPrompts();
assert((await client.getPrompt({ name: prompts[0].name })).messages.length === 1);
await client.close();
console.log("all", names.length, "tools");

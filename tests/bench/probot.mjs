// The baseline of bench_intake: Probot's own middleware with a handler that does nothing.
// node probot.mjs PORT SECRET MODULES, where MODULES is a folder `node_modules` that holds the package `probot`.
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [port, secret, modules] = process.argv.slice(2);
const address = pathToFileURL(resolve(modules, "probot", "lib", "index.js"));
const { createNodeMiddleware, createProbot } = await import(address);

const key = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
const privateKey = key.export({ type: "pkcs1", format: "pem" });
const probot = createProbot({ overrides: { appId: 1, privateKey, secret, logLevel: "fatal" } });
const middleware = await createNodeMiddleware((app) => app.on("push", () => {}), {
  probot,
  webhooksPath: "/hooks/github",
});

createServer((request, response) => {
  middleware(request, response, () => response.writeHead(404).end());
}).listen(Number(port), "127.0.0.1");

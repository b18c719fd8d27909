// Hosts beyond the gateway that speak HTTP/1.1, HTTP/2 and WebSockets, with and without TLS.
// Prints `ready`, and then every request it sees, one JSON object a line.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";

const [folder, ...addresses] = process.argv.slice(2);
const files = { key: readFileSync(`${folder}/leaf.key`), cert: readFileSync(`${folder}/leaf.pem`) };
const say = (what) => console.log(JSON.stringify(what));

const held = [];
let pieces = 0;

function answer(request, response) {
  const body = [];
  const last = request.url.split("?")[0].split("/").pop();
  if (last === "stream") {
    // The rest comes when somebody asks for `release`.
    response.writeHead(200, { "content-type": "text/plain" });
    response.write("first\n");
    return held.push(response);
  }
  if (last === "release") held.splice(0).forEach((one) => one.end("last\n"));
  if (last === "pieces") return response.end(String(pieces));
  if (last === "upload") request.on("data", () => pieces++);
  if (last === "echo") response.setHeader("x-echo", request.headers.authorization ?? "");
  if (last === "echo") response.setHeader("location", request.url);
  request.on("data", (piece) => body.push(piece));
  request.on("end", () => {
    const { httpVersion, method, url, headers } = request;
    say({ method, url, headers, body: Buffer.concat(body).toString() });
    response.writeHead(200, { "content-type": "application/json", "set-cookie": "session=planted-in-a-cookie" });
    response.end(JSON.stringify({ version: httpVersion, method, path: url.split("?")[0], access_token: "planted-in-an-answer" }));
  });
}

function upgrade(request, socket) {
  say({ upgrade: request.url });
  const key = request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  const accept = createHash("sha1").update(key).digest("base64");
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`);
  socket.on("data", (piece) => socket.write(piece));
  socket.on("error", () => socket.destroy());
  socket.on("end", () => socket.end());
}

let open = 0;
for (const address of addresses) {
  const secure = http2.createSecureServer({ ...files, allowHTTP1: true }, answer);
  const plain = http.createServer(answer);
  for (const [server, port] of [[secure, 8443], [plain, 8080]]) {
    server.on("upgrade", upgrade);
    server.listen(port, address, () => { if (++open === 2 * addresses.length) say({ ready: true }); });
  }
}
process.stdin.on("end", () => process.exit()).resume();

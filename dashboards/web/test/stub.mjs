// A daemon of which a test decides each answer, and the page that make built.

import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";

const types = { html: "text/html", js: "text/javascript", css: "text/css", svg: "image/svg+xml" };

/**
 * stub serves the page and the answers of api, which are functions of the query by the
 * path behind /api/v1/, and files of the test's own. What is not there is 503. send writes
 * to the stream that was opened last, and hangUp ends it and takes no other.
 */
export async function stub(api, files = {}) {
  let stream, opened, gone = false;
  const streaming = new Promise((open) => { opened = open; });
  const server = createServer(async (q, r) => {
    const url = new URL(q.url, "http://x"), path = url.pathname.replace(/^\/api\/v1\//, "");
    if (path === "stream" && !gone) {
      r.writeHead(200, { "Content-Type": "text/event-stream" });
      r.flushHeaders();
      stream = r;
      opened();
      return;
    }
    const name = path === "/" ? "index.html" : path.slice(1);
    const file = url.pathname.startsWith("/api/") ? null : files[name] ?? await readFile(new URL("../dist/" + name, import.meta.url)).catch(() => null);
    if (file) {
      r.writeHead(200, { "Content-Type": types[name.split(".").at(-1)] });
      r.end(file);
    } else if (Object.hasOwn(api, path)) {
      r.writeHead(200, { "Content-Type": "application/json" });
      r.end(JSON.stringify(api[path](url.searchParams)));
    } else {
      r.writeHead(503, { "Content-Type": "application/problem+json" });
      r.end(`{"status": 503, "title": "Service Unavailable", "detail": "this one has a stream only"}`);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    streaming,
    async send(summary) {
      if (!stream.write(`event: summary\ndata: ${JSON.stringify(summary)}\n\n`)) await once(stream, "drain");
    },
    hangUp() {
      gone = true;
      stream.end();
    },
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}

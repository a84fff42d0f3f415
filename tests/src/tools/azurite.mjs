// A client of Azurite: makes a container, or reads a blob into a file.
// node --input-type=module -e SCRIPT ENDPOINT ACCOUNT KEY CONTAINER [BLOB FILE]
import { createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";

const [endpoint, account, key, container, blob, file] = process.argv.slice(1);
const date = new Date().toUTCString();
const version = "2021-08-06";
const method = blob === undefined ? "PUT" : "GET";
const path = [container, ...(blob ?? "").split("/").filter(Boolean)].map(encodeURIComponent).join("/");
const resource = `/${account}/${account}/${path}`;
const signed = [
  method,
  ...Array(11).fill(""),
  `x-ms-date:${date}`,
  `x-ms-version:${version}`,
  blob === undefined ? `${resource}\nrestype:container` : resource,
].join("\n");
const signature = createHmac("sha256", Buffer.from(key, "base64")).update(signed).digest("base64");
const answer = await fetch(`${endpoint}/${account}/${path}${blob === undefined ? "?restype=container" : ""}`, {
  method,
  headers: { "x-ms-date": date, "x-ms-version": version, authorization: `SharedKey ${account}:${signature}` },
});
if (!answer.ok) {
  console.error(answer.status, await answer.text());
  process.exit(1);
}
if (file !== undefined) writeFileSync(file, Buffer.from(await answer.arrayBuffer()));

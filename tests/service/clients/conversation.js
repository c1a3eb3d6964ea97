// A resource manager in JavaScript, of the later generation; see conversation.py, which says the same.
//
//     node conversation.js PROTO HOST:PORT RM
"use strict";

const assert = require("node:assert");
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const [proto, address, rmID] = process.argv.slice(2);
const read = loader.loadSync(proto, { keepCase: true, longs: Number, enums: String, defaults: true });
const { si } = grpc.loadPackageDefinition(read);
const client = new si.v1.Scheduler(address, grpc.credentials.createInsecure());
const PATIENCE_MS = 60_000;
const CONFIG = `
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: work
          - name: small
            resources: {max: {vcore: 2}}
          - name: gangs
            properties: {application.sort.policy: fifo}
`;

const amount = (vcore) => ({ resources: { vcore: { value: vcore } } });

// Keeps what a stream has said until somebody looks for something in it.
class Stream {
  constructor(call) {
    this.call = call;
    this.heard = [];
    this.news = () => {};
    call.on("data", (response) => {
      this.heard.push(response);
      this.news();
    });
    call.on("error", (error) => {
      this.error = error;
      this.news();
    });
  }
  all(field) {
    return this.heard.flatMap((response) => response[field]);
  }
  async until(isEnough) {
    for (;;) {
      const found = isEnough();
      if (found) return found;
      if (this.error) throw this.error;
      await new Promise((resolve) => {
        this.news = resolve;
      });
    }
  }
}

let allocations, applications, nodes;

async function register() {
  const request = { rmID, policyGroup: rmID, config: CONFIG };
  await new Promise((resolve, reject) =>
    client.RegisterResourceManager(request, (error) => (error ? reject(error) : resolve())),
  );
  allocations = new Stream(client.UpdateAllocation());
  applications = new Stream(client.UpdateApplication());
  nodes = new Stream(client.UpdateNode());
}

async function addNodes(count) {
  const infos = Array.from({ length: count }, (_, n) => ({
    nodeID: `node-${n}`,
    action: "CREATE",
    schedulableResource: amount(20_000),
  }));
  nodes.call.write({ rmID, nodes: infos });
  await nodes.until(() => nodes.all("accepted").length === count);
}

async function addApplication(applicationID, queueName, more = {}) {
  const application = { applicationID, queueName, ugi: { user: "ann" }, ...more };
  applications.call.write({ rmID, new: [application] });
  await applications.until(() =>
    applications.all("accepted").some((it) => it.applicationID === applicationID),
  );
}

function ask(applicationID, keys, vcore, more = {}) {
  const items = keys.map((allocationKey) => ({
    allocationKey,
    applicationID,
    resourcePerAlloc: amount(vcore),
    ...more,
  }));
  allocations.call.write({ rmID, allocations: items });
}

function release(applicationID, allocationKey, terminationType) {
  const item = { applicationID, allocationKey, terminationType };
  allocations.call.write({ rmID, releases: { allocationsToRelease: [item] } });
}

function placed(applicationID) {
  const told = allocations.all("new").filter((it) => it.applicationID === applicationID);
  const keys = new Set(told.map((it) => it.allocationKey));
  assert.equal(keys.size, told.length, "each is told once");
  return keys;
}

async function untilPlaced(applicationID, keys) {
  await allocations.until(() => keys.every((key) => placed(applicationID).has(key)));
  assert.deepEqual([...placed(applicationID)].sort(), [...keys].sort());
}

async function main() {
  await register();
  await addNodes(3);

  const keys = Array.from({ length: 1000 }, (_, n) => `job-${n}`);
  await addApplication("jobs", "root.work");
  ask("jobs", keys, 10);
  await untilPlaced("jobs", keys);

  await addApplication("limited", "root.small");
  ask("limited", ["a", "b", "c"], 1000);
  await untilPlaced("limited", ["a", "b"]);
  release("limited", "a", "STOPPED_BY_RM");
  await untilPlaced("limited", ["a", "b", "c"]);

  ask("nobody", ["lost"], 10);
  await allocations.until(() => allocations.all("rejectedAllocations").length === 1);

  await addApplication("gang", "root.gangs", { placeholderAsk: amount(2000) });
  const group = { taskGroupName: "workers" };
  ask("gang", ["ph-1", "ph-2"], 1000, { ...group, placeholder: true });
  await untilPlaced("gang", ["ph-1", "ph-2"]);
  ask("gang", ["real"], 1000, group);
  const swap = await allocations.until(() =>
    allocations.all("released").find((it) => it.terminationType === "PLACEHOLDER_REPLACED"),
  );
  release("gang", swap.allocationKey, "PLACEHOLDER_REPLACED");
  await untilPlaced("gang", ["ph-1", "ph-2", "real"]);

  for (const stream of [allocations, applications, nodes]) stream.call.cancel();
  await register();
  await addNodes(1);
  await addApplication("jobs", "root.work");
  ask("jobs", ["job-0"], 10);
  await untilPlaced("jobs", ["job-0"]);
}

const clock = setTimeout(() => {
  throw new Error("it did not come to pass");
}, PATIENCE_MS);
main().then(() => {
  clearTimeout(clock);
  for (const stream of [allocations, applications, nodes]) stream.call.cancel();
  client.close();
  console.log("done");
});

/** A real `holdfast serve` on a SQLite file, which a test can kill and start again. */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PYTHON = process.env["HOLDFAST_TEST_PYTHON"] ?? "python3";

export class Server {
  readonly folder = mkdtempSync(join(tmpdir(), "holdfast-client-"));
  readonly port: number;
  #process: ChildProcess | undefined;

  constructor(port: number) {
    this.port = port;
  }

  static async start(): Promise<Server> {
    const server = new Server(await freePort());
    await server.up();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async up(): Promise<void> {
    const url = `sqlite:///${this.folder}/store.db`;
    const command = ["-c", "from holdfast.cli import main; main()", "serve", "--url", url, "--port", String(this.port)];
    this.#process = spawn(PYTHON, command, { stdio: "ignore" });
    for (let tries = 0; tries < 600; tries++) {
      const ready = await fetch(`${this.url}/readyz`).then((response) => response.ok, () => false);
      if (ready) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error("the server did not start");
  }

  /** Kill it, as a loss of its machine would. */
  async kill(): Promise<void> {
    const process = this.#process;
    if (!process || process.exitCode !== null) return;
    await new Promise((resolve) => {
      process.once("exit", resolve);
      process.kill("SIGKILL");
    });
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}

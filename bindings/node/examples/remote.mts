// Uses a server: its boxes, and its images. The same lines run in a browser and in Deno.
import { Runtime } from "libsandbox/remote";

export async function squares(url: string, apiKey: string): Promise<string> {
  await using runtime = await Runtime.remote({ url, apiKey });
  await using box = await runtime.create("python:3.12", { name: "squares" });
  return (await box.run("python3", "-c", "print([n * n for n in range(5)])")).stdout;
}

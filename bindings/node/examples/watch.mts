// Follows what a command does with the files of a box, and lists what is left.
import { Sandbox } from "libsandbox";

await using box = await Sandbox.create("python:3.12", { network: "None" });
await box.files.makeDirectory("/work");
await using watch = await box.files.watch("/work");
await box.run(["sh", "-c", "mkdir /work/out; mv /work/out /work/results"]);
for await (const event of watch) {
  console.log(event.type, event.path); // create /work/out, rename /work/results
  if (event.type === "rename") break;
}
for await (const file of box.files.list("/work", { depth: 2 })) console.log(file.type, file.path, file.uid);

// Gives a box a file, has a command change it, and takes it back.
import { NotFoundError, Sandbox } from "libsandbox";

await using box = await Sandbox.create("python:3.12", { memory_mib: 256, network: "None", env: { LANG: "C.UTF-8" } });
await box.files.writeFile("/work/numbers", "3 1 2");
await box.run(["python3", "-c", "print(sorted(open('numbers').read().split()), file=open('sorted', 'w'))"], { working_dir: "/work" });
console.log(new TextDecoder().decode(await box.files.readFile("/work/sorted"))); // ['1', '2', '3']
try {
  await box.files.readFile("/work/none");
} catch (failure) {
  if (!(failure instanceof NotFoundError)) throw failure;
  console.log(failure.code); // not_found
}

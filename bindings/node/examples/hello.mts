import { Sandbox } from "libsandbox";

await using box = await Sandbox.create("python:3.12"); // in this process, or wherever the environment says
console.log((await box.run("python3", "-c", "print(2**100)")).stdout);

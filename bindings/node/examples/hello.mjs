import { Sandbox } from "libsandbox";

const box = await Sandbox.create("python:3.12");
try {
  console.log((await box.run("python3", "-c", "print(2**100)")).stdout);
} finally {
  await box.close(); // removes the box
}

from libsandbox import Sandbox

with Sandbox("python:3.12") as box:  # in this process, or wherever the environment says
    print(box.run("python3", "-c", "print(2**100)").stdout)

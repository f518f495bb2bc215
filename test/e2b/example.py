from e2b import Sandbox

with Sandbox.create(timeout=300) as sandbox:
    sandbox.files.write("sum.py", "print(sum(range(10)))")
    print(sandbox.commands.run("python3 sum.py").stdout)

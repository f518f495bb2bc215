"""Many boxes at once with asyncio: each prints as it goes, and a slow one is given up on."""

import asyncio
import sys

from libsandbox import AsyncRuntime, AsyncSandbox


async def work(runtime: AsyncRuntime, image: str, number: int) -> str:
    """Reads the output of a command line by line, while it runs."""
    command = f"echo begun; sleep {number * 100}; echo {number * number}"
    async with AsyncSandbox(image, runtime=runtime) as box, await box.exec("sh", "-c", command) as execution:
        async for stream, data in execution:
            print(number, stream, data)
        return f"{number} ended with {await execution.wait()}"


async def main(image: str) -> None:
    """Gives every box three seconds."""
    async with await AsyncRuntime.open() as runtime:
        tasks = [asyncio.wait_for(work(runtime, image, number), timeout=3) for number in range(3)]
        print(await asyncio.gather(*tasks, return_exceptions=True))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

import asyncio

import pytest

from callwright.agent.session.stop_signal import StoppedError, StopSignal


def test_what_is_stopped_is_over_when_the_error_comes():
    async def main():
        halt, ended = StopSignal(), []

        async def work():
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0.01)
                ended.append(True)

        asyncio.get_running_loop().call_later(0.01, halt.request_stop)
        with pytest.raises(StoppedError):
            await halt.run_until_stopped(work())
        assert ended == [True]
        with pytest.raises(StoppedError):  # and what would come next is stopped too
            await halt.run_until_stopped(asyncio.sleep(60))
        halt.reset()
        assert await halt.run_until_stopped(asyncio.sleep(0, "done")) == "done"

    asyncio.run(main())


def test_an_error_of_the_work_is_its_own():
    async def main():
        async def fail():
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await StopSignal().run_until_stopped(fail())

    asyncio.run(main())


def test_who_is_cancelled_leaves_nothing_running():
    async def main():
        ended = []

        async def work():
            try:
                await asyncio.sleep(60)
            finally:
                ended.append(True)

        task = asyncio.ensure_future(StopSignal().run_until_stopped(work()))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == [True]

    asyncio.run(main())

"""Extension methods with types: a class says which method it is, what its params are, and what is answered.

Both sides share the classes. What does not fit them is answered -32602, before any handler runs.
"""

import asyncio

import msgspec

import acprt
from acprt import acp


class Rating(msgspec.Struct, rename="camel"):
    stars: int
    word_count: int


class RateText(acprt.Request[Rating], method="_example.com/rate_text"):
    text: str
    out_of: int = 5


class RatingStarted(acprt.Notification, method="_example.com/rating_started"):
    first_words: list[str]


agent = acp.Agent("critic", version="0.1.0")


@agent.method
async def rate(request: RateText, cx: acprt.Connection) -> Rating:
    words = request.text.split()
    cx.send_notification(RatingStarted(first_words=words[:2]))
    return Rating(stars=min(request.out_of, len(words)), word_count=len(words))


client = acp.Client("author", version="0.1.0")


@client.on_receive_notification
async def started(note: RatingStarted) -> None:
    print(f"the critic reads: {' '.join(note.first_words)} …")


async def main() -> None:
    async with client.connect(agent) as cx:
        await acp.initialize(cx)
        rating = await cx.send_request(RateText(text="all is well")).block_task(timeout=10)
        print(f"{rating.stars} stars for {rating.word_count} words")
        try:
            await cx.send_request("_example.com/rate_text", {"text": 7}).block_task(timeout=10)
        except acprt.RpcError as error:
            print(f"{error.code}: {error.data['error']}")


if __name__ == "__main__":
    asyncio.run(main())

"""The smallest agent: one request, one notification on the way. `greeter_client.py` talks to it."""

import msgspec

import acprt


class HelloReply(msgspec.Struct, rename="camel"):
    greeting: str


class Hello(acprt.Request[HelloReply], method="hello/say"):  # camelCase on the wire, snake_case in Python
    first_name: str


class Progress(acprt.Notification, method="hello/progress"):
    percent: int


server = acprt.Endpoint("greeter")


@server.method  # a task of its own; what it returns is the answer
async def hello(request: Hello, cx: acprt.Connection) -> HelloReply:
    cx.send_notification(Progress(percent=50))  # leaves before the answer
    return HelloReply(greeting=f"Hello, {request.first_name}!")


if __name__ == "__main__":
    acprt.run(server)  # this process's stdin and stdout, until EOF

"""Registration: the message type is read from the first parameter, and what is wrong fails there, readably."""

from __future__ import annotations

import asyncio
import functools
from typing import Any, TypeVar

import msgspec
import pytest

import acprt
from tests.rawpeer import raw_client_of


class Hello(acprt.Request[str], method="hello"):
    name: str = ""


class Bye(acprt.Request[str], method="bye"):
    pass


class Note(acprt.Notification, method="note"):
    text: str = ""


class Unbound(acprt.Request[str]):
    pass


class Undecodable(acprt.Request[str], method="undecodable"):
    either: Hello | Bye | None = None


class Unresolved(acprt.Request[str], method="unresolved"):
    missing: NowhereDefined | None = None  # type: ignore[name-defined]  # noqa: F821  # that is the case


HelloOrBye = Hello | Bye
Either = TypeVar("Either", Hello, Bye)


async def answers(endpoint: acprt.Endpoint, method: str, params: Any = None) -> Any:
    """What a raw client gets from `endpoint`."""
    async with raw_client_of(endpoint) as peer:
        peer.request(1, method, params)
        line = await peer.receive()
        return line.get("result", line.get("error"))


class TestAnnotations:
    """Where the message type comes from (DEC-5). All annotations in this file are strings."""

    def test_global_class(self, run):
        """DEC-5: resolved through the globals of the handler."""
        endpoint = acprt.Endpoint()

        @endpoint.method
        async def hello(request: Hello) -> str:
            return f"hello {request.name}"

        assert run(answers(endpoint, "hello", {"name": "Ada"})) == "hello Ada"

    def test_class_of_the_registering_frame(self, run):
        """DEC-5: a class defined beside the handler, in the same function, needs no closure."""
        endpoint = acprt.Endpoint()

        class Local(acprt.Request[str], method="local"):
            name: str = ""

        class LocalNote(acprt.Notification, method="local/note"):
            pass

        @endpoint.method
        async def method(request: Local) -> str:
            return request.name

        @endpoint.on_receive_notification()
        async def hear(note: LocalNote) -> None: ...

        @endpoint.on_receive_dispatch
        async def watch(dispatch: acprt.Dispatch[Local | LocalNote]) -> acprt.Handled:
            return acprt.Handled.no(dispatch)

        assert run(answers(endpoint, "local", {"name": "x"})) == "x"

    def test_class_of_the_closure(self, run):
        """DEC-5: a class of an outer function that the handler itself uses, registered from somewhere else."""
        endpoint = acprt.Endpoint()

        def make() -> Any:
            class Enclosed(acprt.Request[str], method="enclosed"):
                name: str = ""

            async def handler(request: Enclosed) -> str:
                assert type(request) is Enclosed
                return request.name

            return handler

        endpoint.method(make())
        assert run(answers(endpoint, "enclosed", {"name": "x"})) == "x"

    def test_closure_that_is_not_complete_yet(self, run):
        """DEC-5: a name that the handler uses may be assigned further down."""
        endpoint = acprt.Endpoint()

        @endpoint.method
        async def hello(request: Hello) -> str:
            return further_down(request)

        def further_down(request: Hello) -> str:
            return "from further down"

        assert run(answers(endpoint, "hello")) == "from further down"

    def test_class_of_the_frame_for_a_dynamic_handler(self, run):
        """DEC-5: `cx.add_dynamic_handler` reads the same way."""

        async def main():
            endpoint = acprt.Endpoint()

            @endpoint.method("install")
            async def install(params: Any, cx: acprt.Connection) -> None:
                class Fresh(acprt.Request[str], method="fresh"):
                    pass

                async def fresh(request: Fresh, responder: acprt.Responder[str]) -> None:
                    responder.respond("fresh")

                cx.add_dynamic_handler(fresh).detach()

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "install")
                await peer.receive()
                peer.request(2, "fresh")
                assert (await peer.receive())["result"] == "fresh"

        run(main())

    @pytest.mark.parametrize("how", ["union", "alias", "nested", "typevar", "typing.Union"])
    def test_several_classes(self, run, how):
        """A union registers each of its members, however it is written."""
        endpoint = acprt.Endpoint()

        async def union(request: Hello | Bye) -> str:
            return type(request).__name__

        async def alias(request: HelloOrBye) -> str:
            return type(request).__name__

        async def nested(request: HelloOrBye | Hello) -> str:
            return type(request).__name__

        async def typevar(request: Either) -> str:
            return type(request).__name__

        async def typing_union(request: Any) -> str:
            return type(request).__name__

        typing_union.__annotations__["request"] = "__import__('typing').Union[Hello, Bye]"
        handlers: dict[str, Any] = {"union": union, "alias": alias, "nested": nested, "typevar": typevar}
        endpoint.method(handlers.get(how, typing_union))
        assert run(answers(endpoint, "hello")) == "Hello"
        assert run(answers(endpoint, "bye")) == "Bye"

    def test_only_the_first_parameter_is_read(self, run):
        """DEC-5: other annotations may name what cannot be resolved here."""
        endpoint = acprt.Endpoint()

        @endpoint.method
        async def hello(
            request: Hello,
            cx: NowhereDefined,  # type: ignore[name-defined]  # noqa: F821  # that is the case
        ) -> NowhereDefined:  # type: ignore[name-defined]  # noqa: F821  # as above
            return "fine"

        assert run(answers(endpoint, "hello")) == "fine"

    @pytest.mark.parametrize("annotation", ["NowhereDefined", "Hello.Inner", "'Hello' | 'Bye'", "Hello |", "1/0"])
    def test_annotation_that_cannot_be_resolved(self, annotation):
        """DEC-5: told at registration, with the text of the annotation and the name of the handler."""

        async def handler(request: Any) -> None: ...

        handler.__annotations__["request"] = annotation
        with pytest.raises(
            TypeError, match=r"handler: cannot resolve the annotation .* of its first parameter"
        ) as caught:
            acprt.Endpoint().method(handler)
        assert repr(annotation) in str(caught.value)


class AsyncCallable:
    """A handler that is an object."""

    async def __call__(self, request: Hello) -> str:
        return f"object {request.name}"


class PlainCallable:
    """A handler that is an object, called on a thread."""

    def __call__(self, request: Hello) -> str:
        return f"plain object {request.name}"


class Service:
    """Handlers that are methods."""

    def __init__(self, greeting: str) -> None:
        self.greeting = greeting

    async def bound(self, request: Hello, cx: acprt.Connection) -> str:
        return f"{self.greeting} {request.name}"

    @staticmethod
    async def static(request: Hello) -> str:
        return f"static {request.name}"

    @classmethod
    async def of_class(cls, request: Hello) -> str:
        return f"{cls.__name__} {request.name}"

    def plain(self, request: Hello) -> str:
        return f"plain {request.name}"


async def with_prefix(prefix: str, request: Hello, cx: acprt.Connection) -> str:
    return f"{prefix} {request.name}"


async def with_suffix(request: Hello, suffix: str) -> str:
    return f"{request.name} {suffix}"


def traced(function: Any) -> Any:
    """A decorator of the usual kind."""

    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return f"traced {await function(*args, **kwargs)}"

    return wrapper


@traced
async def wrapped(request: Hello) -> str:
    return request.name


async def with_default(request: Hello, cx: acprt.Connection | None = None, more: int = 3) -> str:
    return f"{cx is not None} {more}"


async def any_arguments(*args: Any) -> str:
    return f"{len(args)} arguments"


async def keyword_with_default(request: Hello, *, style: str = "plain") -> str:
    return f"{style} {request.name}"


HANDLERS: dict[str, tuple[Any, str]] = {
    "callable object": (AsyncCallable(), "object Ada"),
    "plain callable object": (PlainCallable(), "plain object Ada"),
    "bound method": (Service("hi").bound, "hi Ada"),
    "static method": (Service.static, "static Ada"),
    "class method": (Service.of_class, "Service Ada"),
    "plain bound method": (Service("hi").plain, "plain Ada"),
    "partial": (functools.partial(with_prefix, "dear"), "dear Ada"),
    "partial with a keyword": (functools.partial(with_suffix, suffix="again"), "Ada again"),
    "partial of a bound method": (functools.partial(Service("ho").bound), "ho Ada"),
    "partial of a callable object": (functools.partial(AsyncCallable()), "object Ada"),
    "wrapped": (wrapped, "traced Ada"),
    "with defaults": (with_default, "True 3"),
    "keyword with a default": (keyword_with_default, "plain Ada"),
}


class TestHandlerKinds:
    """What a handler may be."""

    @pytest.mark.parametrize("kind", HANDLERS)
    def test_kinds_of_callables(self, run, kind):
        """DEC-5: functions, methods, partials, wrappers and callable objects, all with string annotations."""
        handler, expected = HANDLERS[kind]
        endpoint = acprt.Endpoint()
        assert endpoint.method(handler) is handler
        assert run(answers(endpoint, "hello", {"name": "Ada"})) == expected

    def test_any_arguments_take_the_longest_shape(self, run):
        """`*args` gets the request and the connection."""
        endpoint = acprt.Endpoint()
        endpoint.method(Hello)(any_arguments)
        assert run(answers(endpoint, "hello")) == "2 arguments"

    def test_partial_of_an_async_callable_object_is_async(self, run):
        """An ordered handler may be one."""

        class Ordered:
            async def __call__(self, request: Hello, responder: acprt.Responder[str]) -> None:
                responder.respond("ordered")

        endpoint = acprt.Endpoint()
        endpoint.on_receive_request(functools.partial(Ordered()))
        assert run(answers(endpoint, "hello")) == "ordered"

    def test_lambda_and_builtin(self, run):
        """With the message named, a plain callable of any origin will do."""
        endpoint = acprt.Endpoint()
        endpoint.method("upper")(lambda params: params["text"].upper())
        endpoint.method("length")(len)
        assert run(answers(endpoint, "upper", {"text": "x"})) == "X"
        assert run(answers(endpoint, "length", [1, 2, 3])) == 3

    def test_one_handler_on_several_endpoints(self, run):
        """DEC-5: registering changes nothing in the function."""

        async def hello(request: Hello) -> str:
            return "shared"

        first, second = acprt.Endpoint(), acprt.Endpoint()
        first.method(second.method(hello))
        assert run(answers(first, "hello")) == run(answers(second, "hello")) == "shared"


async def nothing() -> None: ...
async def one(a) -> None: ...
async def four(a, b, c, d) -> None: ...
async def keyword(request: Hello, *, style: str) -> None: ...
def plain(request: Hello, responder: Any, cx: Any) -> None: ...
def plain_note(note: Note) -> None: ...
async def of_int(request: int) -> None: ...
async def of_note(request: Note) -> None: ...
async def of_request(note: Hello) -> None: ...
async def of_none(request: Hello | None) -> None: ...
async def of_unbound(request: Unbound) -> None: ...
async def unbound_method(self, request: Hello, cx: Any, more: Any) -> None: ...


WRONG: list[tuple[str, Any, str]] = [
    ("method", nothing, r"@method: nothing\(\) must take \(request\) or \(request, cx\)"),
    ("method", four, r"@method: four\(a, b, c, d\) must take \(request\) or \(request, cx\)"),
    ("method", keyword, r"@method: keyword\(request, style\) must take"),
    ("method", one, r"@method: annotate the first parameter of one with a class of acprt\.Request"),
    ("method", of_int, r"@method: of_int takes <class 'int'>, which is not a class of acprt\.Request"),
    ("method", of_note, r"of_note takes .*Note.*, which is not a class of acprt\.Request"),
    ("method", of_none, r"of_none takes .*NoneType.*, which is not a class of acprt\.Request"),
    ("method", of_unbound, r"Unbound has no wire method"),
    ("method", unbound_method, r"unbound_method\(self, request, cx, more\) must take"),
    ("on_receive_request", one, r"@on_receive_request: one\(a\) must take \(request, responder\) or"),
    ("on_receive_request", plain, r"@on_receive_request: plain must be `async def`"),
    ("on_receive_request", four, r"@on_receive_request: four\(a, b, c, d\) must take"),
    ("on_receive_notification", plain_note, r"@on_receive_notification: plain_note must be `async def`"),
    ("on_receive_notification", of_request, r"of_request takes .*Hello.*, which is not a class of acprt\.Notification"),
    ("on_receive_notification", one, r"@on_receive_notification: annotate the first parameter of one"),
    ("on_receive_notification", nothing, r"nothing\(\) must take \(note\) or \(note, cx\)"),
    ("on_receive_dispatch", nothing, r"nothing\(\) must take \(dispatch\) or \(dispatch, cx\)"),
    ("on_receive_dispatch", plain_note, r"@on_receive_dispatch: plain_note must be `async def`"),
    ("on_receive_dispatch", of_note, r"annotate the first parameter of .*of_note.* with acprt\.Dispatch"),
    ("on_close", nothing, r"@on_close: nothing\(\) must take \(cx\)"),
    ("on_close", plain_note, r"@on_close: plain_note must be `async def`"),
    ("with_spawned", four, r"@with_spawned: four\(a, b, c, d\) must take \(cx\)"),
    ("with_spawned", plain_note, r"@with_spawned: plain_note must be `async def`"),
    ("on_close", None, r"on_close.*None"),
]


class TestWrongHandlers:
    """What cannot work fails at registration, by name."""

    @pytest.mark.parametrize(("decorator", "handler", "message"), WRONG)
    def test_it_is_refused_with_the_contract(self, decorator, handler, message):
        """A TypeError names the decorator, the handler and the shapes it may have."""
        with pytest.raises(TypeError, match=message):
            getattr(acprt.Endpoint(), decorator)(handler)

    @pytest.mark.parametrize("takes", [int, 3, None, Note, Unbound, Hello()], ids=repr)
    def test_wrong_message_is_refused(self, takes):
        """What is named in parentheses must be a request class or a method name."""
        with pytest.raises(TypeError):
            register = acprt.Endpoint().method(takes)
            register(any_arguments)

    @pytest.mark.parametrize("way", ["open", "connect", "serve"])
    @pytest.mark.parametrize("message", [Undecodable, Unresolved])
    def test_message_that_cannot_be_decoded_fails_when_a_connection_opens(self, run, way, message):
        """DEC-5: decoders are built then; the error names the class and the handler, and nothing was opened."""

        async def main():
            endpoint = acprt.Endpoint()
            endpoint.method(message)(any_arguments)
            near, far = acprt.memory_pair()
            with pytest.raises(TypeError, match=rf"{message.__name__}.*any_arguments"):
                if way == "open":
                    await endpoint.open(near)
                elif way == "serve":
                    await endpoint.serve(near)
                else:
                    async with endpoint.connect(near):
                        raise AssertionError("never opened")
            good = acprt.Endpoint()
            async with good.connect(near):
                await asyncio.sleep(0)
            await far.aclose()

        run(main())

    def test_struct_that_is_no_message_is_refused(self):
        """A payload class is not a request."""

        class Payload(msgspec.Struct):
            x: int

        async def handler(request: Payload) -> None: ...

        with pytest.raises(TypeError, match=r"Payload.*is not a class of acprt\.Request"):
            acprt.Endpoint().method(handler)

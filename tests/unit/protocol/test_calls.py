"""Each call of clients names an API and that API's response."""

from __future__ import annotations

from sharecore.protocol import ApiKey, calls


def test_the_response_is_the_one_of_the_api() -> None:
    made = {name: value for name, value in vars(calls).items() if isinstance(value, calls.Call)}
    assert len(made) > 40
    assert {name: value.key for name, value in made.items()} == {name: ApiKey[name] for name in made}
    responses = {name: "".join(word.title() for word in name.split("_")) + "Response" for name in made}
    annotations = calls.__annotations__
    assert {name: annotations[name] for name in made} == {
        name: f"Call[received.{response}]" for name, response in responses.items()
    }

"""The page in Chromium: what it shows, with keys alone, in each theme and width; and what axe finds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.harness.running import RunningBroker

AXE = Path(os.environ.get("AXE", "build/page/node_modules/axe-core/axe.min.js"))
MODES: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "phone": {
        "color_scheme": "light", "viewport": {"width": 390, "height": 844}, "device_scale_factor": 2,
        "is_mobile": True, "has_touch": True,
    },
}  # fmt: skip
VIEWS = {
    "groups": ("#/", "workers"),
    "window": ("#/group/workers", "acquired"),
    "partitions": ("#/group/workers?part=partitions", "jobs-0"),
    "members": ("#/group/workers?part=members", "first"),
    "records": ("#/group/workers?part=records", "photo-"),
    "poison": ("#/group/workers?part=poison", "returned 3 times"),
    "letters": ("#/letters?topic=dlq.jobs", "photo-"),
}


class Window:
    """A browser's window, which notes what the page should never do."""

    def __init__(self, browser: Browser, port: int, mode: str) -> None:
        self.base = f"http://127.0.0.1:{port}/"
        self.context = browser.new_context(**MODES[mode])
        self.page: Page = self.context.new_page()
        self.faults: list[str] = []
        self.page.on("console", lambda said: self.faults.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", self._asked)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(self.base):
            self.faults.append(f"it asked for {request.url}")

    def open(self, place: str, text: str) -> Page:
        self.page.goto(self.base + place)
        expect(self.page.locator("main")).to_contain_text(text)
        return self.page


@pytest.fixture
def window(chromium: Browser, running: RunningBroker) -> Iterator[Window]:
    made = Window(chromium, running.broker.page_port, "light")
    yield made
    made.context.close()
    assert made.faults == []


def axe(page: Page) -> list[str]:
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']} ({each['impact']}): {each['nodes'][0]['html']}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical", "moderate")
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("view", VIEWS)
def test_each_view_can_be_read(
    chromium: Browser, running: RunningBroker, shots: Path, view: str, mode: str
) -> None:
    window = Window(chromium, running.broker.page_port, mode)
    page = window.open(*VIEWS[view])
    if view == "window" and mode != "phone":
        page.locator(".strip").first.focus()
    page.screenshot(path=shots / f"{view}-{mode}.png", full_page=True)
    assert axe(page) == []
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0
    assert window.faults == []
    window.context.close()


def test_a_strip_is_read_with_keys(window: Window) -> None:
    page = window.open("#/group/workers", "acquired")
    strip = page.get_by_role("slider", name="records in flight of jobs-0")
    strip.focus()
    page.keyboard.press("Home")
    told = []
    for _ in range(20):
        text = strip.get_attribute("aria-valuetext") or ""
        if text in told:
            break
        told.append(text)
        page.keyboard.press("ArrowRight")
    whole = "\n".join(told)
    for word in ("acquired: held by a member", "delivered 4 of 5 times", "member first", "s left",
                 "available: returned", "acknowledged", "archived", "new: not delivered yet"):  # fmt: skip
        assert word in whole, whole
    assert page.locator(".tip").first.is_visible()


def test_one_gets_about_with_keys(window: Window) -> None:
    page = window.open("", "workers")
    page.keyboard.press("/")
    page.keyboard.type("work")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("workers")
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", level=1)).to_have_text("Share groups")
    page.keyboard.press("l")
    expect(page.get_by_role("heading", level=1)).to_have_text("Dead letters")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("along a strip")


def test_a_theme_stays_chosen(window: Window) -> None:
    page = window.open("", "workers")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Theme: auto").click()
    page.get_by_role("button", name="Theme: light").click()
    assert page.evaluate(ground) != light
    page.reload()
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
    assert page.evaluate(ground) != light


def test_a_letter_is_sent_back(window: Window) -> None:
    page = window.open("#/letters?topic=dlq.jobs", "rejected")
    page.get_by_label("choose letter 0@0").check()
    page.get_by_role("button", name="Redrive 1").click()
    dialog = page.get_by_role("dialog")
    assert axe(page) == []
    dialog.get_by_role("button", name="Redrive").click()
    expect(page.locator("main")).to_contain_text("1 produced to jobs")


def test_a_group_is_reset_and_deleted_once_its_name_is_typed(window: Window) -> None:
    page = window.open("#/group/idle", "Empty")
    page.get_by_role("button", name="Reset offsets").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Plan, then reset").click()
    expect(dialog).to_contain_text("jobs-0")
    assert axe(page) == []
    dialog.get_by_role("button", name="Reset").click()
    expect(page.locator("main")).to_contain_text("1 partitions of idle are reset")
    page.get_by_role("button", name="Delete group").click()
    go = page.get_by_role("dialog").get_by_role("button", name="Delete")
    expect(go).to_be_disabled()
    page.get_by_label("to confirm").fill("idle")
    go.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Share groups")
    expect(page.locator("tbody")).not_to_contain_text("idle")


@pytest.mark.parametrize("mode", MODES)
def test_a_user_logs_in_and_out(chromium: Browser, secured: RunningBroker, shots: Path, mode: str) -> None:
    window = Window(chromium, secured.broker.page_port, mode)
    page = window.open("", "Log in")
    page.screenshot(path=shots / f"login-{mode}.png", full_page=True)
    expect(page.locator("body")).not_to_contain_text("false")
    assert axe(page) == []
    page.get_by_label("User").fill("alice")
    page.get_by_label("Password").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("is not right")
    page.get_by_label("Password").fill("of-alice")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Share groups")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
    # the browser itself reports the 401 response
    assert [each for each in window.faults if "401" not in each] == []
    window.context.close()

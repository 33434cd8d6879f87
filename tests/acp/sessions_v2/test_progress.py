"""`PromptProgress`: the answer to a prompt and the updates of its session, in every order they may come in."""

from __future__ import annotations

from typing import Any

import pytest

from acprt.acp.sessions_v2.progress import PromptProgress
from acprt.acp.sessions_v2.projection import Projection
from acprt.errors import RpcError
from tests.acp.sessions_v2.wire import chunk, decoded, idle, state, text, update

RUNNING = state("running")
ECHO = update("user_message", messageId="m1", content=[text("go")])


class Scenario:
    """A session with one prompt under way."""

    def __init__(self, *before: dict[str, Any], is_alone: bool = True) -> None:
        self.projection = Projection()
        for each in before:
            self.projection.apply(decoded(each))
        self.progress = PromptProgress(self.projection, is_alone=is_alone)

    def see(self, *updates: dict[str, Any]) -> PromptProgress:
        for each in updates:
            made = decoded(each)
            self.projection.apply(made)
            self.progress.updated(made)
        return self.progress

    def accept(self, message_id: str = "m1") -> PromptProgress:
        self.progress.accepted(message_id)
        return self.progress

    def refuse(self, error: RpcError) -> PromptProgress:
        self.progress.refused(error)
        return self.progress


def stages(progress: PromptProgress) -> tuple[bool, bool, bool]:
    return progress.is_accepted, progress.is_started, progress.is_finished


def test_stages_follow_each_other_in_the_usual_order() -> None:
    scenario = Scenario()
    assert stages(scenario.progress) == (False, False, False)
    assert stages(scenario.accept()) == (True, False, False)
    assert stages(scenario.see(ECHO, RUNNING)) == (True, True, False)
    assert stages(scenario.see(idle("end_turn"))) == (True, True, True)
    assert scenario.progress.stop_reason == "end_turn"


def test_whole_work_may_come_before_the_answer() -> None:
    scenario = Scenario()
    assert stages(scenario.see(ECHO, RUNNING, idle("end_turn"))) == (False, True, False)
    assert stages(scenario.accept()) == (True, True, True)
    assert scenario.progress.stop_reason == "end_turn"


def test_idle_seen_before_running_is_ignored() -> None:
    scenario = Scenario()
    scenario.accept()
    assert stages(scenario.see(idle("end_turn"), idle("cancelled"))) == (True, False, False)
    assert scenario.see(RUNNING, idle("refusal")).stop_reason == "refusal"


@pytest.mark.parametrize("accepted_first", [True, False])
def test_idle_that_answers_a_cancel_ends_what_never_began(accepted_first: bool) -> None:
    """An agent that was stopped before it began owes no `running`; the prompt must not wait for one."""
    scenario = Scenario()
    scenario.progress.cancelled()
    if accepted_first:
        scenario.accept()
    assert not scenario.see(idle("end_turn"), idle()).is_finished
    scenario.see(idle("cancelled"))
    scenario.accept()
    assert stages(scenario.progress) == (True, False, True)
    assert scenario.progress.stop_reason == "cancelled"


def test_end_of_earlier_work_is_no_answer_to_the_cancel_for_a_later_prompt() -> None:
    scenario = Scenario(RUNNING, is_alone=False)
    scenario.progress.cancelled()
    scenario.see(idle("cancelled"))
    assert not scenario.accept().is_finished


def test_requires_action_and_repeated_snapshots_do_not_end_it() -> None:
    scenario = Scenario()
    scenario.accept()
    scenario.see(RUNNING, state("requires_action"), RUNNING, state("_odd"), state("running"))
    assert not scenario.progress.is_finished


def test_updates_while_idle_do_not_change_it() -> None:
    """Background work goes on between pieces of foreground work."""
    scenario = Scenario(RUNNING, idle("end_turn"))
    scenario.accept()
    scenario.see(update("tool_call_update", toolCallId="bg", status="completed"), chunk("by the way"))
    assert not scenario.progress.is_started


def test_later_work_leaves_the_stop_reason_alone() -> None:
    scenario = Scenario()
    scenario.accept()
    scenario.see(RUNNING, idle("max_tokens"), RUNNING, idle("cancelled"))
    assert scenario.progress.stop_reason == "max_tokens"


def test_prompt_taken_into_work_that_goes_on_ends_with_it() -> None:
    scenario = Scenario(RUNNING)
    assert stages(scenario.see(chunk("busy"))) == (False, False, False)
    assert stages(scenario.accept()) == (True, True, False)
    assert scenario.see(idle("end_turn")).is_finished


def test_prompt_held_until_the_work_has_ended_waits_for_its_own() -> None:
    scenario = Scenario(RUNNING)
    assert not scenario.see(idle("max_tokens")).is_finished
    scenario.accept()
    assert stages(scenario.see(ECHO)) == (True, False, False)
    assert scenario.see(RUNNING, idle("end_turn")).stop_reason == "end_turn"


def test_place_of_the_message_tells_its_work_when_the_answer_is_late() -> None:
    """Sent while the session worked: the message went into that work, which ended before the answer came."""
    scenario = Scenario(RUNNING)
    scenario.see(ECHO, idle("end_turn"))
    assert scenario.accept().stop_reason == "end_turn"


def test_work_that_the_agent_began_itself_is_not_mistaken_for_the_prompts() -> None:
    scenario = Scenario()
    scenario.see(RUNNING, idle("end_turn"), ECHO)
    assert not scenario.accept().is_finished
    assert scenario.see(RUNNING, idle("refusal")).stop_reason == "refusal"


def test_message_shown_after_the_answer_moves_the_prompt_to_its_work() -> None:
    scenario = Scenario()
    scenario.see(RUNNING)
    scenario.accept()
    assert not scenario.see(state("running")).is_finished
    scenario = Scenario(RUNNING)
    scenario.accept()
    scenario.see(ECHO, idle("cancelled"))
    assert scenario.progress.stop_reason == "cancelled"


def test_prompt_sent_behind_another_one_does_not_take_its_work() -> None:
    scenario = Scenario(is_alone=False)
    scenario.see(RUNNING, idle("max_tokens"))
    assert not scenario.accept().is_finished
    assert scenario.see(RUNNING, idle("end_turn")).stop_reason == "end_turn"


def test_prompts_inserted_together_share_their_work() -> None:
    scenario = Scenario(is_alone=False)
    scenario.accept()
    assert scenario.see(ECHO, RUNNING, idle("end_turn")).stop_reason == "end_turn"


def test_message_id_that_was_used_before_does_not_place_the_prompt() -> None:
    scenario = Scenario(ECHO, RUNNING, idle("end_turn"))
    scenario.accept()
    assert scenario.see(RUNNING, idle("refusal")).stop_reason == "refusal"


def test_refused_prompt_has_failed() -> None:
    error = RpcError.invalid_params("busy")
    scenario = Scenario(RUNNING)
    assert scenario.refuse(error).is_finished
    assert scenario.progress.failure is error
    assert scenario.progress.stop_reason is None


def test_prompt_that_a_cancel_kept_out_is_cancelled_at_once() -> None:
    scenario = Scenario()
    scenario.refuse(RpcError.request_cancelled())
    assert scenario.progress.is_finished
    assert (scenario.progress.stop_reason, scenario.progress.failure) == ("cancelled", None)


def test_prompt_that_a_cancel_kept_out_waits_for_the_work_that_had_begun_for_it() -> None:
    scenario = Scenario()
    scenario.see(RUNNING)
    assert not scenario.refuse(RpcError.request_cancelled()).is_finished
    assert scenario.see(idle("cancelled")).is_finished
    assert scenario.progress.stop_reason == "cancelled"


def test_lost_prompt_has_failed_unless_its_end_was_seen() -> None:
    loss = RpcError.internal_error("gone")
    scenario = Scenario()
    scenario.accept()
    scenario.progress.lost(loss)
    assert scenario.progress.is_finished
    assert scenario.progress.failure is loss
    scenario = Scenario()
    scenario.accept()
    scenario.see(RUNNING, idle("end_turn"))
    scenario.progress.lost(loss)
    assert (scenario.progress.stop_reason, scenario.progress.failure) == ("end_turn", None)


def test_prompt_kept_out_by_a_cancel_does_not_wait_for_an_end_that_cannot_come() -> None:
    scenario = Scenario()
    scenario.see(RUNNING)
    scenario.refuse(RpcError.request_cancelled())
    scenario.progress.lost(RpcError.internal_error("gone"))
    assert scenario.progress.is_finished
    assert scenario.progress.failure is not None

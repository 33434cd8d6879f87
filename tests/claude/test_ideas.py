"""The known bugs and limits of other clients of the command, each with the test that shows that it is none of ours.

Numbers are those of the list of test ideas for this stream, of which docs/claude.md tells in groups. One that has no
test here has its reason.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent

IDEAS: dict[int, str] = {
    1: "test_large_lines_below_the_limit_are_delivered test_line_over_the_limit_is_one_loss_and_the_next_is_delivered",
    2: "@tests/wire/test_lines.py",
    3: "test_large_lines_below_the_limit_are_delivered",
    4: "test_lines_survive_every_seam",
    5: "test_lines_that_are_no_frames_are_skipped_and_the_first_is_reported",
    6: "test_corrupt_answer_fails_its_request test_lines_that_are_no_frames_are_skipped_and_the_first_is_reported",
    7: "test_lines_survive_every_seam test_separators_inside_strings_are_text",
    8: "@tests/wire/test_lines.py",
    9: "test_order_of_members_does_not_matter",
    10: "test_closer_that_is_cancelled_at_any_step_leaves_no_process",
    11: "test_command_that_ignores_everything_is_killed_in_bounded_time",
    12: "test_last_write_after_the_end_of_stdin_is_waited_for",
    13: "test_host_that_ends_without_closing_leaves_no_child",
    14: "test_background_shell_in_a_session_of_its_own_is_stopped_first",
    15: "test_host_that_ends_without_closing_leaves_no_child",
    16: "test_query_without_background_work_ends_at_its_result",
    17: "test_turn_of_a_background_task_belongs_to_no_prompt",
    18: "test_missing_program_and_missing_directory_are_different_errors",
    19: "-: there is no discovery: the command is what the user names, and starting it never waits",
    20: "test_closing_from_another_task_ends_the_turn_and_spins_nowhere",
    21: "test_bound_around_the_end_still_reaps",
    22: "test_closer_that_is_cancelled_at_any_step_leaves_no_process",
    23: "-: the whole suite runs with warnings as errors",
    24: "test_what_was_buffered_is_read_after_the_close",
    25: "test_end_wakes_every_reader test_cancelled_reader_loses_nothing",
    26: "test_end_before_initialize_is_answered_is_one_error_with_the_reason",
    27: "test_exit_status_after_an_error_result_is_no_second_failure",
    28: "test_control_traffic_passes_thousands_of_unread_messages",
    29: "test_cancelled_ask_is_cancelled_and_never_answered",
    30: "test_hundred_answers_at_once_are_hundred_whole_lines",
    31: "@tests/transports/test_process_teardown.py",
    32: "test_server_is_greeted_before_initialize_is_answered",
    33: "test_unknown_request_is_refused_as_unsupported "
    "test_declared_dialog_is_shown_and_another_one_is_left_unanswered",
    34: "test_answer_of_the_wrong_type_is_an_error_and_the_session_lives "
    "test_callback_that_fails_is_an_error_and_the_session_lives",
    35: "test_output_is_a_struct_a_mapping_or_nothing",
    36: "test_answers_to_nothing_are_ignored",
    37: "test_stop_of_an_unknown_task_proves_nothing",
    38: "test_asks_after_the_first_result_are_still_answered",
    39: "test_wait_for_the_end_of_work_is_bounded_and_counted_anew_from_each_result",
    40: "test_many_tool_calls_before_anyone_reads",
    41: "-: prompts are not an iterator here: each is a call, and what it raises is the caller's",
    42: "-: as 41: without a prompt nothing is sent",
    43: "test_ask_waits_as_long_as_a_human_needs",
    44: "test_result_held_back_until_background_agents_end_goes_to_its_own_prompt",
    45: "test_result_after_an_interrupt_is_not_taken_for_the_next_prompts",
    46: "test_result_is_classified_by_its_reason_never_by_a_text",
    47: "test_interrupt_without_effect_is_told test_interrupt_before_the_first_prompt_is_answered",
    48: "test_interrupt_with_queued_prompts_cancels_them_too_when_asked "
    "test_result_after_an_interrupt_is_not_taken_for_the_next_prompts",
    49: "test_cancel_that_crosses_the_result_changes_nothing",
    50: "test_repeated_uuid_is_refused_here",
    51: "test_end_by_update_by_notification_or_by_both_is_one_end",
    52: "test_frames_of_an_earlier_run_are_dropped test_frames_without_a_run_are_never_late",
    53: "test_later_notification_replaces_the_earlier "
    "test_resumed_agent_ends_on_each_call_and_a_late_end_changes_nothing",
    54: "test_report_goes_in_the_place_of_the_summary",
    55: "test_report_is_camel_case_inside",
    56: "test_resource_links_are_written_as_they_came test_words_of_a_later_release_are_kept "
    "test_empty_output_file_is_no_path",
    57: "test_level_without_what_is_ambient test_housekeeping_is_in_the_list_but_no_activity",
    58: "test_level_closes_what_it_no_longer_lists_and_opens_it_again test_foreground_agent_is_in_the_edges_only",
    59: "test_turn_of_a_background_task_belongs_to_no_prompt",
    60: "test_killed_and_stopped_are_one_word",
    61: "test_resumed_task_is_a_new_run_of_the_same_task",
    62: "test_every_prompt_is_one_line_of_json test_prompt_that_is_no_json_is_refused_here",
    63: "-: sending never waits, so it cannot be cancelled; what is queued leaves whole or not at all",
    64: "test_stream_is_asked_for_with_what_the_options_say test_what_is_not_one_rule_is_refused",
    65: "test_initialize_has_what_the_host_brings_and_its_answer_has_what_stands_beside",
    66: "test_environment_is_no_inner_session_s",
}


def test_no_idea_is_left_out() -> None:
    assert sorted(IDEAS) == list(range(1, 67))


@pytest.mark.parametrize("number", [number for number, what in IDEAS.items() if not what.startswith("-")])
def test_idea_has_the_test_that_it_names(number: int) -> None:
    written = {
        name for path in HERE.glob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text("utf-8"))
    }
    for name in IDEAS[number].split():
        assert (HERE.parents[1] / name[1:]).exists() if name.startswith("@") else name in written, name


@pytest.mark.parametrize("number", [number for number, what in IDEAS.items() if what.startswith("-")])
def test_idea_without_a_test_has_its_reason(number: int) -> None:
    assert len(IDEAS[number]) > 20

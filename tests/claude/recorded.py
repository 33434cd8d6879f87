"""Frames as the real command (2.1.332) writes them, from recorded sessions: ids replaced, long values cut.

Each stands under the class that it must decode to. Key order, unknown members and nulls are as recorded.
"""

from __future__ import annotations

from acprt import claude

__all__ = ["FRAMES"]

_SID = '"session_id":"ba830663-a29f-47d1-820c-2e234858fd49"'
_UUID = '"uuid":"caa3fcc2-27f6-42b3-b2da-3ba3943b06b1"'

FRAMES: list[tuple[type[claude.Message], str]] = [
    # 3.1 initialize, then EOF
    (
        claude.ControlRequestMessage,
        '{"type":"control_request","request_id":"req_1","request":{"subtype":"initialize","hooks":null}}',
    ),
    (
        claude.ControlResponseMessage,
        '{"type":"control_response","response":{"subtype":"success","request_id":"req_1","response":{"commands":[{"name":'
        '"review","description":"Review","argumentHint":"","builtin":true}],"agents":[{"name":"claude","description":"x"}],'
        '"output_style":"default","available_output_styles":["default"],"user_output_styles_dir":"/cfg/output-styles",'
        '"models":[{"value":"default","resolvedModel":"m","displayName":"D","description":"d","supportsEffort":true,'
        '"supportedEffortLevels":["low"]}],"account":{"tokenSource":"none","apiProvider":"firstParty"},"pid":7,'
        '"claude_code_version":"2.1.332","current_permission_mode":"default","hook_on_failure_supported":true,'
        '"session_state":"idle","capabilities":["interrupt_receipt_v1"]},"pending_permission_requests":[],'
        '"pending_user_dialog_requests":[]}}',
    ),
    # 3.2 a prompt without login
    (
        claude.UserMessage,
        '{"type":"user","session_id":"","message":{"role":"user","content":"hello"},"parent_tool_use_id":null}',
    ),
    (
        claude.InitMessage,
        '{"type":"system","subtype":"init","cwd":"/cwd",'
        + _SID
        + ',"tools":["Task","Bash"],"mcp_servers":[],"model":"m",'
        '"permissionMode":"default","slash_commands":["compact"],"apiKeySource":"none","claude_code_version":"2.1.332",'
        '"output_style":"default","agents":["claude"],"skills":[],"plugins":[],"analytics_disabled":true,'
        '"memory_paths":{"auto":"/m"},"messaging_socket_path":"/tmp/s.sock","capabilities":["msg_lifecycle_v1"],'
        + _UUID
        + ',"fast_mode_state":"off"}',
    ),
    (
        claude.AssistantMessage,
        '{"type":"assistant","message":{"id":"m","container":null,"model":"<synthetic>","role":"assistant","stop_reason":'
        '"stop_sequence","stop_sequence":"","type":"message","usage":{"input_tokens":0,"output_tokens":0,'
        '"cache_creation_input_tokens":0,"server_tool_use":{"web_search_requests":0},"service_tier":null},"content":'
        '[{"type":"text","text":"Not logged in · Please run /login"}],"diagnostics":null},'
        '"parent_tool_use_id":null,' + _SID + "," + _UUID + ',"timestamp":"2026-11-24T10:00:00.000Z","error":'
        '"authentication_failed","is_api_error_message":true}',
    ),
    (
        claude.ResultMessage,
        '{"duration_api_ms":0,"stop_reason":"stop_sequence",' + _SID + ',"total_cost_usd":0,"usage":{"input_tokens":0},'
        '"modelUsage":{},"permission_denials":[],"terminal_reason":"api_error","fast_mode_state":"off","is_error":true,'
        '"num_turns":1,"subtype":"success","api_error_status":null,"result":"Not logged in · Please run /login",'
        '"type":"result","duration_ms":140,' + _UUID + ',"queued_turn_count":0,"result_index":0,"subagent_stats":{}}',
    ),
    # 3.3 a permission ask
    (
        claude.ControlRequestMessage,
        '{"type":"control_request","request_id":"c0ffee00-0000-4000-8000-000000000000","request":{"subtype":'
        '"can_use_tool","tool_name":"Bash","display_name":"Bash","input":{"command":"touch f","description":"a file"},'
        '"description":"a file","permission_suggestions":[{"type":"addRules","rules":[{"toolName":"Bash",'
        '"ruleContent":"touch f"}],"behavior":"allow","destination":"localSettings"},{"type":"addDirectories",'
        '"directories":["/cwd"],"destination":"session"},{"type":"setMode","mode":"acceptEdits","destination":"session"}],'
        '"blocked_path":"/cwd/f","tool_use_id":"toolu_1"}}',
    ),
    (
        claude.ControlResponseMessage,
        '{"type":"control_response","response":{"subtype":"success","request_id":"c0ffee00-0000-4000-8000-000000000000",'
        '"response":{"behavior":"allow","updatedInput":{"command":"touch f"}}}}',
    ),
    (
        claude.UserMessage,
        '{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":"",'
        '"is_error":false}]},"parent_tool_use_id":null,'
        + _SID
        + ","
        + _UUID
        + ',"timestamp":"2026-11-24T10:00:00.000Z",'
        '"tool_use_result":{"stdout":"","stderr":"","interrupted":false,"isImage":false},"tool_result_meta":[{"id":'
        '"toolu_1","permission_decision":{"decision":"accept","source":"user_temporary"}}]}',
    ),
    # 3.4 a background shell
    (
        claude.BackgroundTasksChangedMessage,
        '{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"b0000task","run_id":"0mxa-097f2535",'
        '"task_type":"local_bash","description":"bg"}],' + _UUID + "," + _SID + "}",
    ),
    (
        claude.TaskStartedMessage,
        '{"type":"system","subtype":"task_started","task_id":"b0000task","run_id":"0mxa-097f2535","tool_use_id":"toolu_2",'
        '"description":"bg","is_backgrounded":true,"awaited":false,"task_type":"local_bash",'
        + _UUID
        + ","
        + _SID
        + "}",
    ),
    (
        claude.TaskUpdatedMessage,
        '{"type":"system","subtype":"task_updated","task_id":"b0000task","run_id":"0mxa-097f2535","patch":{"status":'
        '"completed","end_time":1764000000000},' + _UUID + "," + _SID + "}",
    ),
    (
        claude.TaskNotificationMessage,
        '{"type":"system","subtype":"task_notification","task_id":"b0000task","run_id":"0mxa-097f2535","tool_use_id":'
        '"toolu_2","status":"completed","output_file":"/tmp/tasks/b0000task.output","summary":'
        '"Background command \\"bg\\" completed (exit code 0)",' + _UUID + "," + _SID + "}",
    ),
    (
        claude.BackgroundTasksChangedMessage,
        '{"type":"system","subtype":"background_tasks_changed","tasks":[],' + _UUID + "," + _SID + "}",
    ),
    (
        claude.ResultMessage,
        '{"is_error":false,"num_turns":1,"subtype":"success","result":"Noted.","origin":{"kind":"task-notification",'
        '"producer":"session-task","runId":"0mxa-097f2535"},"result_index":1,"type":"result",'
        + _UUID
        + ","
        + _SID
        + "}",
    ),
    (
        claude.TaskUpdatedMessage,
        '{"type":"system","subtype":"task_updated","task_id":"b0000task","patch":{"status":"killed"},' + _SID + "}",
    ),
    (
        claude.TaskNotificationMessage,
        '{"type":"system","subtype":"task_notification","task_id":"b0000task","status":"stopped","output_file":"",'
        '"summary":"bg",' + _UUID + "," + _SID + "}",
    ),
    # 3.5 a background agent, resumed
    (
        claude.TaskStartedMessage,
        '{"type":"system","subtype":"task_started","task_id":"a0000000000000dbb","run_id":"0mx38i0zj-1","tool_use_id":'
        '"toolu_A","spawn_depth":1,"prompt":"look","task_type":"local_agent","description":"d",'
        + _UUID
        + ","
        + _SID
        + "}",
    ),
    (
        claude.TaskProgressMessage,
        '{"type":"system","subtype":"task_progress","task_id":"a0000000000000dbb","run_id":"0mx38i0zj-1","usage":'
        '{"total_tokens":25,"tool_uses":1,"duration_ms":78},"last_tool_name":"Bash","description":"Running inner",'
        + _UUID
        + ","
        + _SID
        + "}",
    ),
    (
        claude.TaskNotificationMessage,
        '{"type":"system","subtype":"task_notification","task_id":"a0000000000000dbb","run_id":"0mx38i0zj-1","status":'
        '"completed","summary":"Found it","summary_is_report":true,"output_file":"/tmp/o","usage":{"total_tokens":18,'
        '"tool_uses":1,"duration_ms":1207},' + _UUID + "," + _SID + "}",
    ),
    (
        claude.AssistantMessage,
        '{"type":"assistant","message":{"id":"m2","role":"assistant","model":"m","content":[{"type":"tool_use","id":'
        '"toolu_i","name":"Bash","input":{"command":"ls"},"caller":{"type":"direct"}}],"stop_reason":null},'
        '"agent_id":"a0000000000000dbb","parent_tool_use_id":"toolu_A",' + _UUID + "," + _SID + "}",
    ),
    # 3.6 lifecycle, cancel, interrupt of queued prompts
    (
        claude.CommandLifecycleMessage,
        '{"type":"command_lifecycle","command_uuid":"11111111-1111-4111-8111-111111111111","state":"queued",'
        + _UUID
        + ","
        + _SID
        + "}",
    ),
    (
        claude.ControlResponseMessage,
        '{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"cancelled":true,'
        '"message_uuid":"33333333-3333-4333-8333-333333333333"}}}',
    ),
    (
        claude.ControlResponseMessage,
        '{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"still_queued":'
        '["22222222-2222-4222-8222-222222222222"]}}}',
    ),
    (
        claude.AssistantMessage,
        '{"type":"assistant","message":{"id":"m3","role":"assistant","model":"m","content":[{"type":"text","text":"par"}],'
        '"stop_reason":null},"aborted":true,"parent_tool_use_id":null,' + _UUID + "," + _SID + "}",
    ),
    (
        claude.UserMessage,
        '{"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]},'
        '"parent_tool_use_id":null,' + _UUID + "," + _SID + "}",
    ),
    (
        claude.ResultMessage,
        '{"subtype":"error_during_execution","is_error":true,"errors":["[diagnostic] internal"],"stop_reason":null,'
        '"user_message_uuid":"11111111-1111-4111-8111-111111111111","terminal_reason":"aborted_streaming","type":"result",'
        + _UUID
        + ","
        + _SID
        + "}",
    ),
    (claude.ControlCancelRequestMessage, '{"type":"control_cancel_request","request_id":"c0ffee00"}'),
    # 3.7 an MCP server of the host's
    (
        claude.ControlRequestMessage,
        '{"type":"control_request","request_id":"u","request":{"subtype":"mcp_message","server_name":"s","message":'
        '{"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}},"jsonrpc":"2.0","id":0}}}',
    ),
    # streaming, and what else was seen
    (
        claude.StreamEvent,
        '{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":'
        '"Hello"}},' + _SID + ',"parent_tool_use_id":null,' + _UUID + "}",
    ),
    (
        claude.StreamEvent,
        '{"type":"stream_event","event":{"type":"message_start","message":{"id":"m","type":"message","role":"assistant",'
        '"model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":3,"output_tokens":1}}},'
        + _SID
        + ',"ttft_ms":12,'
        '"parent_tool_use_id":null,' + _UUID + "}",
    ),
    (
        claude.StatusMessage,
        '{"type":"system","subtype":"status","status":null,"permissionMode":"plan",' + _UUID + "," + _SID + "}",
    ),
    (
        claude.SessionStateChangedMessage,
        '{"type":"system","subtype":"session_state_changed","state":"idle",' + _UUID + "," + _SID + "}",
    ),
    (claude.KeepAlive, '{"type":"keep_alive"}'),
]

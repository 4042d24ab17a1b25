"""Each list of stop words keeps what its own question needs."""

from hotset.text import stops


def test_what_stands_in_every_text_is_in_every_list_but_the_glue():
    lists = (stops.QUESTION, stops.PAGE, stops.CALL, stops.CHAT, stops.REQUEST, stops.STATEMENT)
    assert all({"the", "and", "of", "which"} <= each for each in (*lists, stops.TOOL_PROMPT))


def test_no_word_that_denies_is_left_out_of_what_is_compared_or_shortened():
    assert not {"no", "not", "never", "without", "cannot"} & (stops.STATEMENT | stops.GLUE)


def test_a_name_in_a_page_or_a_question_is_not_dropped_for_being_a_word_of_requests():
    assert {"file", "test", "fix"} <= stops.CALL
    assert not {"file", "test", "fix"} & (stops.PAGE | stops.QUESTION)


def test_tools_are_called_tools_in_every_prompt_about_them():
    assert {"tool", "tools"} <= stops.TOOL_PROMPT
    assert not {"tool", "tools"} & stops.CHAT

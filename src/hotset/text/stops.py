"""Stop words: words without meaning for a search, by kind of search.

A single list would change what is sent: each was chosen, and most were measured, for its own
question. All share `_EVERYWHERE`.
"""

from __future__ import annotations

from hotset.text.words import word_set

_EVERYWHERE = word_set("""
    a about all also am an and any are as at be been but by can could did do does for from had
    has have he here how i if in into is it its just let me my of on or our she should so some
    such than that the their them then there they this to us very was we were what when where
    which who why will with would you your
""")

QUESTION = _EVERYWHERE | word_set("""
    above after again because before being below between both doing down during each few find
    further give having her hers him his itself more most no nor not now off once only other out
    over own please same show tell these those through too under until up use used using while
    whom
""")
"""For a question about a page or a memory."""

PAGE = _EVERYWHERE | word_set("""
    after async await before being between both class const def default done each elif else
    except export false function get her his import lambda like made make may more most must new
    none not null one only other out over pass raise return see self set shall true try two
    under use used using var yield
""")
"""For a page, prose or code: never among its keywords."""

CALL = PAGE | word_set("""
    add bool change changes check code data file files first fix implement int line lines look
    name need needs now number object please read run string sure test tests type update value
    void want
""")
"""For a call and the words before it: they do not show which lines of its result matter."""

CHAT = _EVERYWHERE | word_set("""
    able assist currently d don find get give hello help hi interested kindly know like ll look
    looking m make may might mine must need no not please provide re s shall show sure t tell
    thank thanks these those too try trying use used using ve want whom whose
""")
"""Polite phrases around a request, which occur in every question."""

TOOL_PROMPT = CHAT - {"don", "mine"} | {"tool", "tools"}
"""For a prompt that is compared with a tool's name and description."""

REQUEST = _EVERYWHERE | word_set("""
    able above actually add added adding after again already anything back because before being
    both cannot change changed changes changing check code consider context create created
    currently description doing don't done down each either else etc even every few file files
    first fix fixed fixing following further get gets getting give go goes going good got great
    having hello help hey hi him his however i'd i'll i'm i've implement implementing instead
    issue it's itself keep know let's like little look looks lot made make makes making many
    maybe mean might mine more most much must need needs never new next no not nothing now off
    ok okay once one only onto other ours out over own per perhaps plan please pretty problem
    put quite rather really remove removed right run same say see seem seems set shall show
    since someone something soon still sure take tell thank thanks that's there's these thing
    things think those though through too try trying two under until up update updated upon use
    used using want wants way we'd we'll we're we've well what's whether while whole within
    without won't work works yes yet you'd you'll you're yours yourself
""")
"""For a request to an agent: never a topic of it."""

STATEMENT = _EVERYWHERE | word_set("""
    aren being d doesn don done isn lets ll m may might mine must ok okay ours over please re
    right s shall t these those too ve wasn whom whose won yes
""")
"""For a statement: two that share only these differ. Without `no` and `not`."""

GLUE = word_set("""
    a also an and are as at be been by can could for from i in into is it its just my of on or
    our please should so that the these this those to was we were with would you your
""")
"""Words that a reader can restore; none of them negates a sentence."""

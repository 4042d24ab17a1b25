"""The language of a text: by its script, and by its most common words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hotset.text.words import UNSPACED, word_set

_WORD = re.compile(r"[^\W\d_]+")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]{2,}")
_OTHER = re.compile(r"[\u0370-\u1dff\u2c00-\ud7ff\uf900-\ufdff\ufe70-\ufeff\uff66-\uffdc]")
_RUN = re.compile(f"[{UNSPACED}]+")
_LETTERS_A_WORD = 2
"""Letters of another script that weigh as much as a word in Latin letters."""

ENGLISH = word_set("""
    a about all an and any are as at be been but by can could do does for from get give has have
    how i if in into is it its just me my need not of on or our please show so some that the their
    there these this those to was we were what when where which who why will with would you your
""")

STOPS: Mapping[str, frozenset[str]] = {
    "german": word_set("""
        aber als am an auf aus bei bin bis bitte da damit das dass dein deine dem den der des die
        dies diese diesen dieser dieses doch du durch ein eine einem einen einer eines er es für
        gerade gibt hab habe haben hat hier ich ihm ihn ihr im in ins ist kann kannst kein keine
        können mach machen mal man mein meine meinem meinen meiner mich mir mit möchte nach nicht
        noch nur ob oder ohne sein seine sich sie sind so soll sollte über um und uns unser unsere
        unter vom von vor wann war was weil welche welcher welches wenn wer werden wie will wir
        wird wo würde zeig zeige zu zum zur
    """),
    "french": word_set("""
        ai as au aux avec avez avoir c ce ces cet cette combien comment d dans de des donc du elle
        elles en es est et être eu fais fait faire il ils j je l la le les leur leurs lui m ma mais
        me mes moi mon montre n ne nos notre nous on ont ou où par pas peut peux plaît plus pour
        puis qu quand que quel quelle quelles quels qui quoi s sa sans se ses si son sont sur t ta
        te tes toi ton tu un une va vais veux vos votre voudrais vous y à
    """),
    "spanish": word_set("""
        a al algo con cual cuál cuándo cuando cuánta cuánto cuántos cómo como de del desde dónde
        donde e el él ella ellas ellos en era es esa ese eso esta está están este esto estos favor
        fue ha hace hacer hay he la las le les lo los más me mi mis muestra muy necesito ni no nos
        nuestra nuestro o para pero por porque puede puedes puedo que qué quién quiero se sea ser si
        sí sin sobre son su sus también te tengo tiene tu tus tú un una unas uno unos y ya yo
    """),
    "italian": word_set("""
        a ad ai al alla alle anche che chi ci come con cosa da dal dalla de dei del della delle di
        dove e è ed era fa fammi gli ha hai hanno ho i il in io la le lei lo loro ma mi mia mie mio
        mostra ne nel nella nelle no noi non o per perché più posso può puoi qual quale quali quando
        quanto quella quello questa questo se sei si sono su sul sulla sulle suo tra tu tuo un una
        uno vi voglio vorrei
    """),
    "portuguese": word_set("""
        a ao aos as até com como da das de dele do dos e é ela ele em entre era essa esse esta está
        este eu foi há isso isto já lhe mais mas me mesmo meu meus minha mostra muito na nas não no
        nos nós o os ou para pela pelo por pode posso preciso qual quais quando quanto que quem
        quero se sem ser seu são só sua também te tem tenho um uma você
    """),
    "dutch": word_set("""
        aan als al bij dan dat de deze die dit dus een en er geen haar heb hebben heeft het hij hoe
        hun ik in is je kan kun maar me met mij mijn naar niet nog nu of om onder ons ook op over te
        tot uit van voor waar wanneer wat welke we wel werd wie wij wil worden wordt zal ze zich
        zijn zo
    """),
}
"""Words that nearly every text of a language has, by its name; without those of English."""

_ALSO_ENGLISH = word_set("""
    ad ai al all am as bin come die do dove ed era fond hat he her hier his i in is lo man me mine
    moi no nos of on or over pas per plus sans see sei so son sur te ten ton tot tu un van war was
    we wel wie will
""")
"""Words of other languages that English has, too, or that are abbreviations in it."""
_TELLING = {
    name: frozenset(word for word in stops if len(word) > 1 or not word.isascii())
    for name, stops in STOPS.items()
}


def language_of(text: str) -> str:
    """One of `STOPS`, or "" for English and for what is not known."""
    words = {word.lower() for word in _WORD.findall(text)} - _ALSO_ENGLISH
    counts = {name: len(words & stops) for name, stops in _TELLING.items()}
    best = max(counts, key=lambda name: counts[name])
    least = 2 if text.isascii() else 1  # `Los Angeles` is no Spanish
    return best if counts[best] >= least and counts[best] > len(words & ENGLISH) else ""


def is_latin(text: str) -> bool:
    """True unless most of its words are in another script."""
    other = len(_OTHER.findall(text))
    return not other or other <= _LETTERS_A_WORD * len(_LATIN.findall(text))


def pairs_of_letters(text: str) -> frozenset[str]:
    """Pairs of neighbours in scripts without spaces between words: most words there have two
    letters."""
    runs = _RUN.findall(text)
    return frozenset(run[at : at + 2] for run in runs for at in range(max(1, len(run) - 1)))

"""Makes tests/text/fixtures/tokenizers: small tokenizer files and the ids Hugging Face gives.

    ~/.cache/tandem/reference/bin/python tests/parity/make_tokenizer_fixtures.py

Made with tokenizers 0.22.2, sentencepiece 0.2.2 and transformers 4.57.6 (the versions used are
written into expected.json). The texts are article 1 of the Universal Declaration of Human Rights
and sentences written for this program; no file of another project is in the result.
"""
import json
import pathlib
import random
import tempfile
import unicodedata

import sentencepiece
import tokenizers
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

ARTICLE = {
    "en": "All human beings are born free and equal in dignity and rights. They are endowed with reason and "
          "conscience and should act towards one another in a spirit of brotherhood.",
    "es": "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de razón y "
          "conciencia, deben comportarse fraternalmente los unos con los otros.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de "
          "conscience et doivent agir les uns envers les autres dans un esprit de fraternité.",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen "
          "begabt und sollen einander im Geiste der Brüderlichkeit begegnen.",
    "it": "Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti. Essi sono dotati di ragione e di "
          "coscienza e devono agire gli uni verso gli altri in spirito di fratellanza.",
    "pt": "Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Dotados de razão e de "
          "consciência, devem agir uns para com os outros em espírito de fraternidade.",
    "pl": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni rozumem "
          "i sumieniem i powinni postępować wobec innych w duchu braterstwa.",
    "tr": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler ve "
          "birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler. İstanbul ılık.",
    "ru": "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и "
          "должны поступать в отношении друг друга в духе братства.",
    "nl": "Alle mensen worden vrij en gelijk in waardigheid en rechten geboren. Zij zijn begiftigd met verstand en "
          "geweten, en behoren zich jegens elkander in een geest van broederschap te gedragen.",
    "cs": "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím a "
          "mají spolu jednat v duchu bratrství.",
    "ar": "يولد جميع الناس أحراراً متساوين في الكرامة والحقوق، وقد وهبوا عقلاً وضميراً وعليهم أن يعامل بعضهم بعضاً بروح الإخاء.",
    "zh-cn": "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。",
    "hu": "Minden emberi lény szabadon születik és egyenlő méltósága és joga van. Az emberek, ésszel és "
          "lelkiismerettel bírván, egymással szemben testvéri szellemben kell hogy viseltessenek.",
    "ko": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 부여받았으며 서로 형제애의 정신으로 행동하여야 한다.",
    "ja": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。",
    "hi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
    "he": "כל בני אדם נולדו בני חורין ושווים בערכם ובזכויותיהם.",
    "el": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.",
    "th": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ",
    "vi": "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền.",
    "am": "የሰው፡ልጅ፡ሁሉ፡ሲወለድ፡ነጻና፡በክብርና፡በመብትም፡እኩልነት፡ያለው፡ነው።",
    "ka": "ყველა ადამიანი იბადება თავისუფალი და თანასწორი თავისი ღირსებითა და უფლებებით.",
    "bn": "সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে।",
    "ta": "மனிதப் பிறிவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்.",
}
LANGUAGES = ["en", "es", "fr", "de", "it", "pt", "pl", "tr", "ru", "nl", "cs", "ar", "zh-cn", "hu", "ko", "ja", "hi"]
SPECIALS = ["[STOP]", "[UNK]", "[SPACE]", "[START]"] + [f"[{language}]" for language in LANGUAGES]

SPACES = [" ", "  ", "\t", "\n", "\r\n", "\r", "\u00a0", "\u2003", "\u3000", "\u0085", "\u2028", "\u200b", "\ufeff", "\x0b"]
MARKS = ["\u0301", "\u0300", "\u0308", "\u0327", "\u0345", "\u20d0", "\u093c", "\u094d", "\u0e31", "\u3099", "\u309a",
         "\ufe0f", "\U0001d165", "\U000e0061", "\u0897"]
EMOJI = ["😀", "👩‍🚀", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷", "🇺", "👍🏽", "❤️", "☎", "©", "1️⃣", "🫨", "‍", "🧑🏿‍🤝‍🧑🏻"]
ODD = ["\x00", "\x01", "\x07", "\x1b", "\x7f", "\x9f", "\u200c", "\u200d", "\u200e", "\u202e", "\u2066", "\ufffd", "\ufffe",
       "\uffff", "\ue000", "\U0010ffff", "\U000f0000", "\u0378", "\u2581", "▁▁", "_", "__", "\u203f", "\ufb01", "\ufdfa",
       "ﷺ", "Ａ", "ｶﾞ", "㌕", "①", "½", "ª", "ß", "İ", "ŉ", "ǆ", "Å", "ｱ\u0301", "ﬀ\u0301", "각", "\u1100\u1161\u11a8",
       "क्षि", "क़\u0301", "न्त्र", "க்ஷ", "\u0600١", "\u110bd", "\u034f", "´", "¨", "<unk>", "</s>", "<pad>", "<extra_id_3>",
       "[SPACE]", "[en]", "[UNK]", "[STOP]", "[[en]]", "[space]", "[SPACE", "word[SPACE]word", "<0x41>", "\u2028a"]
BLOCKS = [(0x20, 0x7e), (0xa0, 0x24f), (0x250, 0x36f), (0x370, 0x52f), (0x530, 0x5ff), (0x600, 0x6ff), (0x700, 0x8ff),
          (0x900, 0xdff), (0xe00, 0x109f), (0x10a0, 0x137f), (0x1380, 0x1aff), (0x1b00, 0x1fff), (0x2000, 0x2bff),
          (0x2c00, 0x2fff), (0x3000, 0x33ff), (0x4e00, 0x9fff), (0xa000, 0xabff), (0xac00, 0xd7ff), (0xf900, 0xfdff),
          (0xfe00, 0xffff), (0x10000, 0x10fff), (0x11000, 0x12fff), (0x16000, 0x18dff), (0x1d000, 0x1d7ff),
          (0x1e000, 0x1eeff), (0x1f000, 0x1faff), (0x20000, 0x323af), (0xe0000, 0xe01ef), (0, 0x1f)]


def corpus():
    """Sentences in 25 languages; what the fixtures are trained on."""
    lines = []
    for text in ARTICLE.values():
        lines += [text, text.lower()] * 2
    lines += ["the quick brown fox jumps over the lazy dog", "on the century of the centre", "pack my box with five dozen jugs",
              "it is at the end of the street", "she sells sea shells", "how much wood would a woodchuck chuck"] * 3
    return lines


def generated_text(source):
    """One text: anything from one word to a few hundred characters of mixed scripts."""
    words = [word for text in ARTICLE.values() for word in text.split()]
    parts = []
    for _ in range(source.choice([1, 1, 2, 3, 5, 8, 13, 21])):
        kind = source.random()
        if kind < 0.45:
            parts.append(source.choice(words))
        elif kind < 0.55:
            low, high = source.choice(BLOCKS)
            parts.append("".join(chr(source.randint(low, high)) for _ in range(source.randint(1, 8))))
        elif kind < 0.62:
            word = source.choice(words)
            at = source.randint(0, len(word))
            parts.append(word[:at] + source.choice(MARKS + ODD) + word[at:])
        elif kind < 0.70:
            parts.append("".join(source.choice(ODD + MARKS + EMOJI + SPACES) for _ in range(source.randint(1, 4))))
        elif kind < 0.76:
            parts.append(source.choice(EMOJI) * source.randint(1, 2))
        elif kind < 0.82:
            parts.append(source.choice(SPECIALS))
        elif kind < 0.88:
            parts.append(str(source.randint(0, 10 ** source.randint(1, 9))) + source.choice(["", ".", "%", "€", "st", ",5"]))
        elif kind < 0.94:
            parts.append(unicodedata.normalize(source.choice(["NFD", "NFKD", "NFC"]), source.choice(words)))
        else:
            parts.append(source.choice(words).upper())
    joined = ""
    for part in parts:
        joined += part + (source.choice(SPACES) if source.random() < 0.15 else " " if source.random() < 0.75 else "")
    return joined.encode("utf-8", "ignore").decode("utf-8")  # no lone surrogates


def generated_texts(count, seed):
    source = random.Random(seed)
    return [generated_text(source) for _ in range(count)]


def chosen_texts():
    """The texts of the committed fixture."""
    texts = ["", " ", "   ", "\n", "\t\r\n", "a", "A", "é", "e\u0301", "\u0301", "\u0301a", "▁", "▁a", " a ", "a  b", "don't stop.",
             "century", "[en]the[SPACE]century", "[en] the quick", "x[SPACE]y", "[SPACE][SPACE]", "[UNK]", "</s>", "<extra_id_3>",
             "a</s>b", "a <extra_id_3> b", "the\u00a0end", "zero\u200bwidth", "ab\u200dcd", "क्षत्रिय", "שָׁלוֹם", "\u202eabc\u202c",
             "ＡＢＣ　ｄｅｆ", "ﬁne ﬂow", "①②③", "½ + ¼", "ｶﾞｷﾞ", "가각힣", "\u1112\u1161\u11ab\u1100\u1173\u11af", "\x00\x01a\x02b", "\r\na\r\n",
             "x" * 60, "ab" * 200, "the " * 300, "字" * 100, "word" * 500, "\U0010ffff", "a\u0378b", "e" + "\u0301" * 40, "😀" * 20]
    texts += list(ARTICLE.values()) + [text.lower() for text in ARTICLE.values()]
    texts += EMOJI + ODD + [f"a{mark}b" for mark in MARKS] + [f"a{space}b" for space in SPACES]
    return texts + generated_texts(150, seed=20261115)


def plain_bpe(size, lines):
    """A BPE file as dict, ids dense, trained by the reference."""
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIALS[:3], show_progress=False)
    tokenizer.train_from_iterator(lines, trainer)
    return json.loads(tokenizer.to_str())


def renumber(model, new_id):
    model["vocab"] = {token: new_id(identifier) for token, identifier in model["vocab"].items()}


def like_xtts(size=700):
    """Shaped as XTTS's vocab.json: merges as strings, some twice with another rank, ids with holes, the
    language tokens between the others."""
    file = plain_bpe(size, corpus())
    model = file["model"]
    merges = [" ".join(merge) for merge in model["merges"]]
    source = random.Random(7)
    again = source.sample(merges[:80], 40)
    for merge in again:  # later, so that the last rank differs from the first
        merges.insert(source.randint(100, len(merges)), merge)
    model["merges"] = merges
    renumber(model, lambda identifier: identifier if identifier < 250 else identifier + 20 if identifier < 500 else identifier + 23)
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    for place, token in enumerate(SPECIALS[3:]):
        model["vocab"][token] = 250 + place if place < 16 else 520 + place - 16
    file["added_tokens"] = [{"id": model["vocab"][token], **flags, "content": token} for token in SPECIALS]
    model["vocab"] = dict(sorted(model["vocab"].items(), key=lambda item: item[1]))
    file.pop("truncation"), file.pop("padding")
    return file


def small_rules(path):
    """Normalisation rules as sentencepiece reads them: a part of nmt_nfkc that keeps the fixture small."""
    rules = {}
    for low, high in [(0xa0, 0x24f), (0x1e00, 0x1eff), (0x2000, 0x218f), (0x2460, 0x24ff), (0x3000, 0x3000), (0x3300, 0x335f),
                      (0xfb00, 0xfb06), (0xff01, 0xff9f), (0xfdfa, 0xfdfa), (0x958, 0x95f), (0x9dc, 0x9df)]:
        for code in range(low, high + 1):
            normal = unicodedata.normalize("NFKC", chr(code))
            if normal != chr(code):
                rules[chr(code)] = normal
            apart = unicodedata.normalize("NFD", chr(code))
            if len(apart) > 1 and unicodedata.normalize("NFC", apart) == chr(code):
                rules[apart] = chr(code)
    for first in range(0xff76, 0xff85):
        rules[chr(first) + "\uff9e"] = unicodedata.normalize("NFKC", chr(first) + "\uff9e")
    for code in list(range(1, 9)) + list(range(0xb, 0x20)) + [0x7f, 0x8f, 0x9f]:
        rules[chr(code)] = ""
    for code in [9, 10, 12, 13, 0x1680, 0x200b, 0x200e, 0x200f, 0x2028, 0x2029, 0x2581, 0xfeff, 0xfffd]:
        rules[chr(code)] = " "
    points = lambda text: " ".join(f"{ord(c):X}" for c in text)
    path.write_text("".join(f"{points(old)}\t{points(new)}\n" for old, new in sorted(rules.items())))


def like_t5(size=600, whole_charsmap=False, legacy=True, **more):
    """A Unigram file made the way T5's is: sentencepiece, then transformers' converter."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "corpus.txt").write_text("\n".join(corpus()))
        options = {"normalization_rule_name": "nmt_nfkc"}
        if not whole_charsmap:
            small_rules(folder / "rules.tsv")
            options = {"normalization_rule_tsv": str(folder / "rules.tsv")}
        sentencepiece.SentencePieceTrainer.train(
            input=str(folder / "corpus.txt"), model_prefix=str(folder / "model"), vocab_size=size, model_type="unigram",
            pad_id=0, eos_id=1, unk_id=2, bos_id=-1, character_coverage=0.98, hard_vocab_limit=False, num_threads=1,
            minloglevel=2, **options, **more)
        slow = transformers.T5Tokenizer(str(folder / "model.model"), extra_ids=10, legacy=legacy)
        return json.loads(transformers.convert_slow_tokenizer.convert_slow_tokenizer(slow).to_str())


def load(file):
    return Tokenizer.from_str(json.dumps(file))


def main():
    folder = pathlib.Path(__file__).resolve().parents[1] / "text" / "fixtures" / "tokenizers"
    folder.mkdir(parents=True, exist_ok=True)
    files = {"like_xtts": like_xtts(), "like_t5": like_t5()}
    texts = chosen_texts()
    expected = {"versions": {package.__name__: package.__version__ for package in (tokenizers, sentencepiece, transformers)},
                "texts": texts}
    for name, file in files.items():
        tokenizer = load(file)
        expected[name] = [tokenizer.encode(text).ids for text in texts]
        expected[name + "_decoded"] = [tokenizer.decode(ids) for ids in expected[name]]
        (folder / f"{name}.json").write_text(json.dumps(file, ensure_ascii=False, indent=None) + "\n")
    first = like_xtts()
    first["model"]["merges"] = list(dict.fromkeys(first["model"]["merges"]))
    differ = sum(a != b.ids for a, b in zip(expected["like_xtts"], load(first).encode_batch(texts)))
    assert differ > 20, "the repeated merges of the fixture change nothing"
    (folder / "expected.json").write_text(json.dumps(expected, indent=None, separators=(",", ":")) + "\n")
    for path in sorted(folder.iterdir()):
        print(f"{path.name:20} {path.stat().st_size:8} bytes")
    print(f"{len(texts)} texts; {differ} of them differ when the first of two merges counts")


if __name__ == "__main__":
    main()

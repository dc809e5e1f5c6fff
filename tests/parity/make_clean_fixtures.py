#!/usr/bin/env python3
"""Makes tests/text/fixtures/clean_coqui.json: texts and what coqui-tts makes of them.

    python tests/parity/make_clean_fixtures.py

Needs coqui-tts 0.28.0, num2words 0.5.14, ko-speech-tools 0.1.0, pypinyin 0.55.0, cutlet 0.5.2 with
unidic-lite 1.0.8. `clean` is null where Coqui raises an exception. compare_clean.py uses the same
sentences, more of them.
"""

import importlib.metadata
import json
import pathlib
import random
import re
import warnings

PACKAGES = ("coqui-tts", "num2words", "ko-speech-tools", "pypinyin", "cutlet", "unidic-lite")
LANGUAGES = "en es fr de it pt pl tr ru nl cs ar zh-cn hu ko ja hi".split()

WORDS = {
    "en": "The price of Apples rose; Meet ME near St. Paul's Café today, naïve Mr. Jones Dr. Who Co. Ltd.",
    "es": "El niño compró Manzanas en la Sra. López; ¿Qué hora es? el Sr. Pérez Dr. Ruiz Dra. Gil jr.",
    "fr": "Où est l'Élève de Mme. Dupont ? le Mr. Noël a dit œuvre; St. Malo Dr. Roy ltd.",
    "de": "Die Straße über dem Fluß; Frau Dr. Müller und Fr. Weiß aus St. Gallen Co. kauften Äpfel",
    "it": "Perché la Città è bella; il Sig. Rossi e Dr. Verdi vanno a St. Vincent Co. ltd.",
    "pt": "São Paulo não é a Capital; o Sr. João e a Sra. Inês Dra. Lúcia jr. coração",
    "pl": "Dzień dobry Łódź; P. Kowalski i M. Nowak dr. Żak sw. Jan jr. książka",
    "tr": "İstanbul'da Çok güzel Işık var; B. Yılmaz ve Dr. Öztürk byk. ÜLKE ırmak İyi",
    "ru": "Привет МИР; Г-жа Иванова и г-н Петров д-р Ёлкин объект",
    "nl": "Het Één huis; Dhr. Jansen en Mevr. de Vries dr. Bos jhr. Six reünie",
    "cs": "Dobrý den Příteli; p. Novák a Dr. Černý Ing. Dvořák žluťoučký kůň",
    "ar": "كان هناك الكتاب في المدرسة؛ هل أنت بخير؟ نعم",
    "zh-cn": "今天 天气 很好 我们 去 北京 中国 银行 ，他 说 。她 喜欢 音乐 ！ 长城 在 这里",
    "hu": "Jó Napot kívánok; Dr. Szabó és Kovács b. az Ő nőv. árvíztűrő",
    "ko": "안녕하세요 한국어 읽기 물엿 값이 닭고기 없다 서울 의사 좋은 아침 각각 꽃",
    "ja": "こんにちは カタカナ ひらがな コーヒー きょう は がっこう 日本 東京 私 です ありがとう",
    "hi": "नमस्ते दुनिया यह किताब है। क्या आप ठीक हैं? हाँ",
}
# Sentences as people write them, to say how often Chinese and Japanese are read as there.
EVERYDAY = {
    "zh-cn": ("今天天气很好，我们去公园散步吧。|"
              "他在银行工作了十年。|"
              "请问火车站怎么走？|"
              "这本书我已经看完了。|"
              "她长得很漂亮，唱歌也好听。|"
              "我觉得这个办法不行。|"
              "中国的首都是北京。|"
              "音乐会晚上八点开始。|"
              "孩子们在学校里学习汉语。|"
              "明天会下雨吗？|"
              "他把杯子打破了。|"
              "我们应该重新考虑这个问题。|"
              "这条路很长，要走很久。|"
              "妈妈做的菜很好吃。|"
              "你还没有告诉我你的名字。|"
              "图书馆里不能大声说话。|"
              "经济发展得很快。|"
              "他数学考了一百分。|"
              "老师教我们写字。|"
              "我喜欢喝咖啡，不喜欢喝茶。|"
              "门口有一只黑色的猫。|"
              "便宜的东西不一定好。|"
              "飞机晚点了两个小时。|"
              "医生说他需要休息。|"
              "这里的风景真美！|"
              "我想买一张去上海的票。|"
              "他们正在讨论新的计划。|"
              "电脑坏了，我没办法工作。|"
              "春节是中国最重要的节日。|"
              "你能帮我一个忙吗？|"
              "工厂里的工人都下班了。|"
              "我弟弟比我高。|"
              "昨天晚上我睡得很晚。|"
              "科学家发现了一种新的植物。|"
              "请把窗户关上。|"
              "这个地方我以前来过。|"
              "他的话让我很感动。|"
              "水果店在超市旁边。|"
              "大家都为他感到高兴。|"
              "时间过得真快。").split("|"),
    "ja": ("こんにちは、げんきですか。|"
           "わたしはがくせいです。|"
           "これはほんです。|"
           "あしたはやすみです。|"
           "ありがとうございます。|"
           "おはようございます！|"
           "さくらがきれいです。|"
           "ここはどこですか？|"
           "とてもおいしいです。|"
           "すみません、えきはどこですか。|"
           "ゆっくりはなしてください。|"
           "またあした。|"
           "今日は天気がいいです。|"
           "私は東京に住んでいます。|"
           "日本語を勉強しています。|"
           "電車が遅れています。|"
           "コーヒーを飲みますか。|"
           "彼は毎朝新聞を読みます。|"
           "明日学校へ行きます。|"
           "この本はとても面白い。|"
           "駅まで歩いて十分かかります。|"
           "レストランで食事をしました。|"
           "窓を開けてください。|"
           "子供たちは公園で遊んでいます。|"
           "写真を撮ってもいいですか。|"
           "昨日は雨が降りました。|"
           "友達と映画を見ました。|"
           "お名前は何ですか。|"
           "この電車は京都に行きますか。|"
           "水を一杯ください。").split("|"),
}
ORDINALS = {
    "en": "st nd rd th", "es": "º ª er o a os as", "fr": "º ª er re e ème", "de": "st th º . ª",
    "it": "º ° ª o a i e", "pt": "º ª o a os as", "pl": "º ª st th", "ar": "ون ين ث ر ى",
    "cs": ".", "ru": "-й -я -е -ое -ье -го", "nl": "de ste e", "tr": ". inci nci uncu üncü",
    "hu": ". adik edik odik ödik ik", "ko": "번째 번 차 째", "hi": "st th",
    "zh-cn": "年 月 日 个 元 号", "ja": "年 月 日 個 円",
}
SYMBOLS = ["&", "@", "%", "#", "$", "£", "°", "€", '"', "  ", "\t", "\u00a0"]


def integer(rng):
    digits = rng.choice([1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 9, 12])
    return str(rng.randrange(10 ** digits))


def grouped(rng):
    mark = rng.choice([",", ".", " ", "-"])
    return mark.join([str(rng.randrange(1000))] + ["%03d" % rng.randrange(1000) for _ in range(rng.randint(1, 3))])


def decimal(rng):
    return integer(rng)[:7] + rng.choice(".,") + str(rng.randrange(10 ** rng.randint(1, 4)))


def amount(rng):
    number = rng.choice([integer, integer, decimal, grouped])(rng)
    sign = rng.choice("$£€")
    return rng.choice([sign + number, number + sign, sign + " " + number, number + " " + sign])


def piece(rng, language):
    kind = rng.randrange(14)
    if kind < 4:
        return rng.choice(WORDS[language].split())
    if kind < 6:
        return integer(rng)
    if kind < 8:
        return decimal(rng) if language != "zh-cn" or kind == 6 else integer(rng) + "%"
    if kind == 8:
        return grouped(rng)
    if kind < 11:
        return amount(rng)
    if kind == 11:
        return integer(rng)[:6] + rng.choice(ORDINALS[language].split())
    if kind == 12:
        return rng.choice(SYMBOLS)
    return rng.choice(["a", "x", ""]) + integer(rng) + rng.choice(["", ".", "!", "kg", "%", "°", ", ", ".5.6", "…"])


def sentence(rng, language):
    text = ""
    for _ in range(rng.randint(1, 7)):
        text += piece(rng, language) + rng.choice([" ", " ", " ", " ", "", ", ", ". ", "-"])
    return text


def plain_sentence(rng, language):
    """Words only, as most text is."""
    return " ".join(rng.choice(WORDS[language].split()) for _ in range(rng.randint(2, 9)))


def sentences(language, count, seed=11):
    """`count` texts: words, numbers, amounts, ordinals, decimals, abbreviations, symbols, mixed.

    Where Coqui raises on what half of them hold (Hindi digits), half are words only. No number has
    more than 16 digits: clean_text does not say those.
    """
    rng = random.Random(f"{language} {seed}")
    texts = []
    while len(texts) < count:
        text = sentence(rng, language)
        if re.search(r"([0-9][^0-9A-Za-z]{0,2}){17}", text):
            continue
        texts.append(text)
        if language in ("hi", "cs", "ja", "zh-cn"):
            texts.append(plain_sentence(rng, language))
    return texts[:count]


def numbers(language, seed=1):
    """All integers to 2000 and 3000 samples below 10^12, alone and as ordinals."""
    rng = random.Random(f"numbers {seed}")
    integers = list(range(2001)) + [rng.randrange(10 ** rng.randint(4, 12)) for _ in range(3000)]
    ending = ORDINALS[language].split()[0]
    return [str(number) for number in integers] + [f"{number}{ending}" for number in integers]


def one_kind(language):
    """One text of each kind, so that a failing line says what is wrong."""
    shapes = ["0", "7", "21", "101", "118", "1000", "1234", "12345", "1000000", "2,000,001", "2.000.001",
              "0.5", "12,5", "3.14", "100.0", "$1", "£1", "€1", "1€", "20$", "£20.15", "$1,234.56", "€1.234,56",
              "$0.01", "5%", "# 3", "a & b", "x@y", "30°", "10-20", "12:30", "1.2.3"]
    shapes += [number + ending for ending in ORDINALS[language].split()[:5] for number in ("1", "23")]
    return shapes + [" ".join(WORDS[language].split()[at:at + 5]) for at in range(0, len(WORDS[language].split()), 5)]


def reference():
    """Coqui's cleaner as a function of (text, language): the clean text, or None where it raises."""
    warnings.filterwarnings("ignore")
    from TTS.tts.layers.xtts.tokenizer import VoiceBpeTokenizer

    tokenizer = VoiceBpeTokenizer()

    def clean(text, language):
        try:
            return tokenizer.preprocess_text(text, language.split("-")[0])
        except Exception:  # whatever it is, a user of Coqui gets no text
            return None

    return clean


def main():
    clean = reference()
    table = {}
    for language in LANGUAGES:
        texts = one_kind(language)
        texts += EVERYDAY.get(language, []) + sentences(language, max(12, 66 - len(texts)))
        table[language] = [{"text": text, "clean": clean(text, language)} for text in texts]
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    out = pathlib.Path(__file__).resolve().parents[1] / "text" / "fixtures" / "clean_coqui.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    rows = ",\n".join(
        json.dumps(language) + ": [\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in table[language]) + "]"
        for language in LANGUAGES)
    out.write_text('{"versions": ' + json.dumps(versions) + ',\n"texts": {\n' + rows + "}}\n", encoding="utf-8")
    print(f"{out}: {sum(map(len, table.values()))} texts, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()

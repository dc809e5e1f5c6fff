"""Compares Tandem's tokenizers with Hugging Face `tokenizers` on generated texts in many scripts.

    PYTHON tests/parity/compare_tokenizers.py TOOL [COUNT]

TOOL is the built tokenize_tool, COUNT (10000) the number of texts for the main comparisons; the
others take a fifth. Prints one line a comparison and exits with 1 when a single text differs.
Needs tokenizers, sentencepiece and transformers (tests/parity/make_tokenizer_fixtures.py).
"""
import copy
import json
import os
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import make_tokenizer_fixtures as fixtures  # noqa: E402
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers  # noqa: E402


class Comparison:
    def __init__(self, tool, count):
        self.tool, self.count, self.failed = tool, count, 0
        self.work = tempfile.TemporaryDirectory()
        self.texts = fixtures.generated_texts(count, seed=1) + fixtures.chosen_texts()

    def line(self, name, wrong, total, more=""):
        self.failed += bool(wrong)
        print(f"{name:58} {'FAILED' if wrong else 'ok'} ({total - wrong} of {total}){more}", flush=True)

    def run(self, *words, lines):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        done = subprocess.run([self.tool, *map(str, words)], input=text, capture_output=True, text=True, encoding="utf-8")
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return done.stdout

    def save(self, text):
        path = os.path.join(self.work.name, "tokenizer.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def answers(self, mode, path, lines):
        return [json.loads(line) for line in self.run(mode, path, lines=lines).split("\n")[:-1]]

    def agree(self, name, file, texts=None, decode=True):
        """Ids and decoded texts of `file`, a dict or the text of a file."""
        texts = self.texts[: self.count // 5] + self.texts[self.count:] if texts is None else texts
        text = file if isinstance(file, str) else json.dumps(file)
        path = self.save(text)
        judge = Tokenizer.from_str(text)
        try:
            mine = self.answers("encode", path, texts)
            theirs = [judge.encode(one).ids for one in texts]
            wrong = [i for i in range(len(texts)) if mine[i] != theirs[i]]
            self.line(name, len(wrong), len(texts))
            for i in wrong[:3]:
                print(f"    {texts[i]!a}\n    {mine[i]}\n    {theirs[i]}")
            if not decode:
                return
            back = self.answers("decode", path, theirs)
            wrong = [i for i in range(len(texts)) if back[i] != judge.decode(theirs[i])]
            self.line(name + ", back to text", len(wrong), len(texts))
            for i in wrong[:3]:
                print(f"    {theirs[i]}\n    {back[i]!a}\n    {judge.decode(theirs[i])!a}")
        except RuntimeError as error:
            self.line(f"{name}: {error}", 1, len(texts))


def with_parts(file, **parts):
    changed = copy.deepcopy(file)
    for name, value in parts.items():
        if name.startswith("model_"):
            changed["model"][name[6:]] = value
        else:
            changed[name] = value
    return changed


def added(content, identifier, **flags):
    return {"id": identifier, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": False, **flags}


def part(value):
    return json.loads(value.__getstate__())


def variants_of_bpe(compare, xtts):
    compare.agree("BPE, merges as pairs", with_parts(
        xtts, model_merges=[merge.split(" ") for merge in xtts["model"]["merges"]]))
    compare.agree("BPE, fused unknowns", with_parts(xtts, model_fuse_unk=True))
    compare.agree("BPE, no unknown token", with_parts(xtts, model_unk_token=None))
    compare.agree("BPE, whole words first", with_parts(xtts, model_ignore_merges=True))
    compare.agree("BPE, no pre-tokeniser", with_parts(xtts, pre_tokenizer=None))
    byte_vocabulary = {**xtts["model"]["vocab"], **{f"<0x{i:02X}>": 2000 + i for i in range(256)}}
    decoder = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"},
                                                {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    compare.agree("BPE, byte fallback", with_parts(xtts, model_byte_fallback=True, model_vocab=byte_vocabulary, decoder=decoder))
    del byte_vocabulary["<0xE2>"]
    compare.agree("BPE, byte fallback with a byte missing", with_parts(
        xtts, model_byte_fallback=True, model_vocab=byte_vocabulary, decoder=decoder))
    flags = [added("[SPACE]", 2, special=True), added("the", 0, single_word=True), added("des", 0, lstrip=True, rstrip=True),
             added("unmöglich", 0), added("LIBRES", 0, normalized=True), added("an", 0, rstrip=True, normalized=True),
             added("ani", 0, special=True, lstrip=True)]
    compare.agree("BPE, added tokens with every flag", with_parts(xtts, added_tokens=flags, normalizer={"type": "Lowercase"}))
    for name, options in {"continuing prefix": {"continuing_subword_prefix": "##"}, "word suffix": {"end_of_word_suffix": "</w>"}}.items():
        tokenizer = Tokenizer(models.BPE(unk_token="[UNK]", **options))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer.train_from_iterator(fixtures.corpus(), trainers.BpeTrainer(
            vocab_size=900, special_tokens=["[UNK]"], show_progress=False, **options))
        file = json.loads(tokenizer.to_str())
        file["decoder"] = {"type": "BPEDecoder", "suffix": "</w>"} if "word" in name else {
            "type": "WordPiece", "prefix": "##", "cleanup": True}
        compare.agree(f"BPE, {name}", file)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.train_from_iterator(fixtures.corpus(), trainers.BpeTrainer(
        vocab_size=700, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    file = json.loads(tokenizer.to_str())
    file["decoder"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    compare.agree("BPE, byte level", file)


def variants_of_normalizers(compare, xtts):
    for form in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase"):
        compare.agree(f"normaliser {form}", with_parts(xtts, normalizer={"type": form}), decode=False)
        compare.agree(f"normaliser {form}, every character", bytes_of(form), every_text("a\u0301{}\u0323"), decode=False)
    steps = [normalizers.Strip(left=True, right=True), normalizers.Replace("e", "ea"), normalizers.Prepend("x"), normalizers.NFKC()]
    compare.agree("normaliser Strip, Replace, Prepend, NFKC", with_parts(xtts, normalizer=part(normalizers.Sequence(steps))), decode=False)
    regex = {"type": "Replace", "pattern": {"Regex": "\\s{2,}"}, "content": "[SPACE]"}
    compare.agree("normaliser Replace with a regular expression", with_parts(xtts, normalizer=regex), decode=False)


def variants_of_unigram(compare, t5):
    compare.agree("Unigram, legacy off", fixtures.like_t5(whole_charsmap=True, legacy=False))
    compare.agree("Unigram, byte fallback", fixtures.like_t5(size=900, whole_charsmap=True, byte_fallback=True))
    metaspace = lambda **options: {"type": "Metaspace", "replacement": "▁", **options}
    for scheme in ("first", "never", "always"):
        for split in (True, False):
            compare.agree(f"Unigram, Metaspace {scheme}{', split' if split else ''}", with_parts(
                t5, pre_tokenizer=metaspace(prepend_scheme=scheme, split=split),
                decoder=metaspace(prepend_scheme=scheme, split=split)))
    before = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace(prepend_scheme="first")]}
    compare.agree("Unigram, WhitespaceSplit and Metaspace first", with_parts(t5, pre_tokenizer=before))
    spiece = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace(prepend_scheme="always")]}
    only_map = t5["normalizer"]["normalizers"][0] if t5["normalizer"]["type"] == "Sequence" else t5["normalizer"]
    compare.agree("Unigram, charsmap alone, WhitespaceSplit, Metaspace", with_parts(t5, pre_tokenizer=spiece, normalizer=only_map))
    compare.agree("Unigram, no normaliser", with_parts(t5, normalizer=None))


def every_text(pattern):
    return [pattern.format(chr(code)) for code in range(0x110000)
            if not 0xD800 <= code < 0xE000 and not 0xF0100 <= code < 0x10FF00]


def bytes_of(form):
    """A file whose ids show every byte the normaliser makes."""
    tokens = [["<unk>", 0.0]] + [[f"<0x{byte:02X}>", -1.0] for byte in range(256)]
    return {"version": "1.0", "added_tokens": [], "normalizer": {"type": form}, "pre_tokenizer": None, "post_processor": None,
            "decoder": None, "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": True, "vocab": tokens}}


def every_character(compare, xtts, t5):
    """Each character between letters, after a sign the charsmap changes, and before a mark."""
    compare.agree("BPE, every character", xtts, every_text("a{}b"), decode=False)
    compare.agree("Unigram, every character", t5, every_text("ª{0} {0}ª{0}\u0301"), decode=False)


def training(compare):
    lines = fixtures.corpus() * 10 + fixtures.generated_texts(300, seed=3)
    for size in (2500, 2900):
        trained = compare.run("train", size, lines=lines)
        judge = Tokenizer.from_str(trained)
        ids = sorted(judge.get_vocab().values())
        compare.line(f"trained here: {size} ids, dense", ids != list(range(size)), 1)
        compare.agree(f"trained here: a BPE of {size}", trained, compare.texts)
    compare.line("trained here: same bytes for the texts in another order",
                 trained != compare.run("train", size, lines=lines[::-1]), 1)
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    words = fixtures.corpus()
    tokenizer.train_from_iterator(words, trainers.BpeTrainer(
        vocab_size=900, min_frequency=2, special_tokens=fixtures.SPECIALS, show_progress=False))
    mine = Tokenizer.from_str(compare.run("train", 900, lines=words)).get_vocab()
    shared = len(set(tokenizer.get_vocab()) & set(mine))
    compare.line("trained here: tokens the reference's trainer finds too", max(0, 890 - shared), 890, f" {shared} of 900")


def extending(compare, xtts):
    new = fixtures.generated_texts(2000, seed=4)
    old_judge = fixtures.load(xtts)
    extended = compare.run("extend", compare.save(json.dumps(xtts)), 500, lines=new)
    judge = Tokenizer.from_str(extended)
    compare.agree("extended here: by 500 tokens", extended, compare.texts)
    before, after = old_judge.get_vocab(), judge.get_vocab()
    compare.line("extended here: existing ids unchanged", sum(after.get(token) != i for token, i in before.items()), len(before))
    compare.line("extended here: 500 more", len(after) - len(before) != 500, 1)
    end = max(before.values()) + 1
    kept = wrong = 0
    for text in compare.texts:
        ids = judge.encode(text).ids
        if all(identifier < end for identifier in ids):
            kept += 1
            wrong += ids != old_judge.encode(text).ids
    compare.line("extended here: texts without new tokens keep their ids", wrong, kept)


def speed(compare, name, file, texts):
    text = json.dumps(file)
    judge = Tokenizer.from_str(text)
    best = 1e9
    for _ in range(5):
        start = time.process_time()
        for one in texts:
            judge.encode(one)
        best = min(best, time.process_time() - start)
    mine = compare.run("time", compare.save(text), lines=texts).strip()
    theirs = 1e6 * best / len(texts)
    print(f"speed of {name}: {mine}; reference {theirs:.1f} us a text, {theirs / float(mine.split()[0]):.1f} times as long (CPU time)")


def main():
    tool = sys.argv[1]
    compare = Comparison(tool, int(sys.argv[2]) if len(sys.argv) > 2 else 10_000)
    xtts, t5 = fixtures.like_xtts(), fixtures.like_t5(whole_charsmap=True)
    compare.agree("BPE like XTTS", xtts, compare.texts)
    compare.agree("Unigram like T5, nmt_nfkc", t5, compare.texts)
    compare.agree("Unigram like T5, own charsmap", fixtures.like_t5())
    every_character(compare, xtts, t5)
    variants_of_bpe(compare, xtts)
    variants_of_normalizers(compare, xtts)
    variants_of_unigram(compare, t5)
    training(compare)
    extending(compare, xtts)
    sentences = [text[:100] for text in fixtures.ARTICLE.values()] * 40
    speed(compare, "BPE like XTTS", xtts, ["[en]" + text.lower().replace(" ", "[SPACE]") for text in sentences])
    speed(compare, "Unigram like T5", t5, sentences)
    sys.exit(1 if compare.failed else 0)


if __name__ == "__main__":
    main()

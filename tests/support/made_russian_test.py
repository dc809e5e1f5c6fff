#!/usr/bin/env python3
"""scripts/voice/made_russian.py: phones that are kept apart are not chosen from; texts of a clip.

Run: made_russian_test.py ROOT
"""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(sys.argv.pop(1)) / "scripts/voice"))
import made_russian

TREE = """;; a comment with ((1 2)) in it
(set! clunits_selection_trees '(
("a"
 ((n.name is b)
  ((((0 13.9)
     (2 12.8)
     (10 1.5e+00))
    14.1))
  ((((3 1) (4 2)) 9))))
("aa"
 ((((2 7.5) (3 8)) 10)))
))
"""


class Trees(unittest.TestCase):
    def test_phones_kept_apart_are_gone_from_every_leaf_of_their_own_tree(self):
        thinned = made_russian.without(TREE, {"a_2", "aa_3", "b_0"})
        self.assertIn("(((0 13.9) (10 1.5e+00)) 14.1)", thinned)
        self.assertIn("(((3 1) (4 2)) 9)", thinned)
        self.assertIn("(((2 7.5)) 10)", thinned)

    def test_a_leaf_is_never_empty(self):
        self.assertIn("(((3 1) (4 2)) 9)", made_russian.without(TREE, {"a_3", "a_4"}))

    def test_everything_else_stays(self):
        def bare(text):
            return "".join(text.split())
        self.assertEqual(bare(made_russian.without(TREE, set())), bare(TREE))


class Clips(unittest.TestCase):
    def test_they_are_plain_sentences_that_are_not_too_long(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder) / "usr/share/games/fortunes/ru"
            place.mkdir(parents=True)
            words = ["Это первое предложение здесь.", "В 1999 году было не так.", "Два слова.", "Latin words are left out.",
                     "А это последнее из них!", "слово " * 30 + "конец."]
            (place / "some.u8").write_text("\n%\n".join(words) + "\n\t-- Некто\n", encoding="utf-8")
            clips = made_russian.read_clips(pathlib.Path(folder))
        said = " ".join(clips)
        self.assertEqual(sorted(said), sorted("Это первое предложение здесь. А это последнее из них!"))
        self.assertTrue(all(len(clip) <= made_russian.LONGEST for clip in clips))


unittest.main(argv=sys.argv[:1])

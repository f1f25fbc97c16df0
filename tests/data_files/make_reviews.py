#!/usr/bin/env python3
"""Writes text/reviews/train.tsv and dev.tsv: generated sentences about plays with a class each, 1 for praise and 0 for blame.
Usage: make_reviews.py. Standard library only. In one sentence in four, a "not" inverts the praise or blame."""
import pathlib
import random

HERE = pathlib.Path(__file__).resolve().parent
PRAISE = ['sweet', 'noble', 'gentle', 'fair', 'merry', 'worthy', 'true', 'brave', 'rich', 'excellent', 'honest', 'happy', 'strong', 'good']
BLAME = ['dull', 'poor', 'weak', 'false', 'vile', 'cold', 'bitter', 'idle', 'foul', 'heavy', 'sick', 'weary', 'mean', 'bad']
THINGS = ['play', 'story', 'scene', 'speech', 'song', 'night', 'hand of the author', 'tale of two houses', 'second part', 'end', 'king', 'company']
FRAMES = ['the {thing} is {word} and {other}', 'a {word} {thing} , {other} from the first line to the last', 'what a {word} {thing} this is',
          'i found the {thing} {word} , even {other}', '{word} , {other} , and never too long', 'we came to see a {thing} and it was {word}',
          'the {thing} , as they say , is {word}', 'all night the {thing} is {other} and the music is {word}']
TURNED = ['the {thing} is not {word}', 'there is nothing {word} in this {thing}', 'a {thing} that is not {word} , nor {other}']


def sentence(rng, praise):
    turned = rng.random() < 0.25
    words = PRAISE if praise != turned else BLAME
    word, other = rng.sample(words, 2)
    return rng.choice(TURNED if turned else FRAMES).format(thing=rng.choice(THINGS), word=word, other=other), int(praise)


def main():
    rng, folder = random.Random(4), HERE / 'text' / 'reviews'
    folder.mkdir(exist_ok=True)
    for name, rows in (('train', 1600), ('dev', 300)):
        lines = [sentence(rng, i % 2 == 0) for i in range(rows)]
        (folder / f'{name}.tsv').write_text(''.join(f'{text}\t{label}\n' for text, label in lines))


if __name__ == '__main__':
    main()

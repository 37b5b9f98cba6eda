"""Synthetic rows, written for these tests from the documented fields of each layout; none is from a data set."""

ROWS = {
    "own": [
        {"id": "1", "context": "Two and two make", "choices": ["four", "five"], "gold": 0},
        {"context": "Snow is", "choices": ["black", "white"], "gold": "white", "group": "snow", "level": 2},
        {"context": "", "choices": ["b", "c"], "gold": 1, "cluster": "k", "source": "s", "delimiter": "\n"},
    ],
    "boolq": [
        {"title": "Tin", "question": "is tin a metal", "answer": True, "passage": "Tin is a soft metal."},
        {"passage": "Tin is a soft metal.", "question": "is tin a gas?", "idx": 4, "label": 0},
    ],
    "anli": [
        {
            "uid": "u1",
            "premise": "A dog sleeps.",
            "hypothesis": "An animal rests.",
            "label": 0,
            "reason": "a dog is one",
        },
        {
            "uid": "u2",
            "context": "A dog sleeps.",
            "hypothesis": "The dog runs.",
            "label": "c",
            "reason": "",
            "tag": "x",
        },
    ],
    "arc": [
        {
            "id": "Q1",
            "question": {
                "stem": "What melts ice?",
                "choices": [{"text": "heat", "label": "A"}, {"text": "cold", "label": "B"}],
            },
            "answerKey": "A",
        },
        {
            "id": "Q2",
            "question": "What do plants need?",
            "choices": {"text": ["light", "tin", "salt"], "label": ["1", "2", "3"]},
            "answerKey": "1",
        },
    ],
    "openbookqa": [
        {
            "id": "7-1",
            "question_stem": "The sun gives the earth",
            "choices": {"text": ["warmth", "rain", "sand", "tin"], "label": ["A", "B", "C", "D"]},
            "answerKey": "A",
        },
        {
            "id": "7-2",
            "question": {
                "stem": "A stone sinks in",
                "choices": [{"text": "air", "label": "A"}, {"text": "water", "label": "B"}],
            },
            "fact1": "stones are heavier than water",
            "answerKey": "B",
        },
    ],
    "hellaswag": [
        {
            "ind": 4,
            "activity_label": "Cooking",
            "ctx_a": "She breaks an egg.",
            "ctx_b": "then she",
            "ctx": "She breaks an egg. then she",
            "endings": ["beats it.", "wears it.", "reads it.", "sells it."],
            "source_id": "clip~1",
            "split": "val",
            "split_type": "indomain",
            "label": "0",
        },
        {
            "ind": 5,
            "activity_label": "Cooking",
            "ctx": "He stirs",
            "ending_options": ["the soup.", "the wall."],
            "label": 0,
        },
    ],
    "race": [
        {
            "example_id": "high1.txt",
            "article": "Ann has a cat.",
            "question": "Who has a cat?",
            "options": ["Ann", "Ben", "Cid", "Dan"],
            "answer": "A",
        },
        {
            "id": "high2.txt",
            "article": "Ben has a dog. It is old.",
            "questions": ["Who has a dog?", "The dog is _ ."],
            "options": [["Ann", "Ben", "Cid", "Dan"], ["new", "old", "red", "blue"]],
            "answers": ["B", "B"],
        },
    ],
    "winogrande": [
        {
            "qID": "P1-1",
            "sentence": "The cup fell off the shelf because the _ was loose.",
            "option1": "cup",
            "option2": "shelf",
            "answer": "2",
        },
        {"qID": "P2-1", "sentence": "_ thanked Ben for his help.", "option1": "Ann", "option2": "Cid", "answer": "1"},
    ],
    "socialiqa": [
        {
            "context": "Ann lent Ben her pen.",
            "question": "How would Ben feel?",
            "answerA": "grateful",
            "answerB": "angry",
            "answerC": "hungry",
            "label": "1",
        },
        {
            "context": "Cid lost the game.",
            "question": "How would Cid feel?",
            "answerA": "proud",
            "answerB": "sad",
            "answerC": "tall",
            "correct": "B",
        },
    ],
    "multirc": [
        {
            "idx": 0,
            "version": 1.1,
            "passage": {
                "text": "Ann and Ben ran. Cid slept.",
                "questions": [
                    {
                        "idx": 0,
                        "question": "Who ran?",
                        "answers": [
                            {"idx": 0, "text": "Ann", "label": 1},
                            {"idx": 1, "text": "Ben", "label": 1},
                            {"idx": 2, "text": "Cid", "label": 0},
                        ],
                    },
                    {"idx": 1, "question": "Who slept?", "answers": [{"idx": 3, "text": "Cid", "label": 1}]},
                ],
            },
        },
        {
            "paragraph": "It rained.",
            "question": "What fell?",
            "answer": "rain",
            "label": 1,
            "idx": {"paragraph": 1, "question": 2, "answer": 4},
        },
    ],
    "ethics": [
        {"label": 1, "input": "I hid the old man's cane.", "is_short": True, "edited": False},
        {"label": 0, "scenario": "I no longer greet him because the sky is blue."},
        {"label": 1, "scenario": "Could you water the plants?", "excuse": "No, you did it already."},
        {"label": 1, "scenario": "Ann gave away her last coin. [SEP] generous"},
        {"baseline": "I ate a fresh pear.", "less_pleasant": "I ate a rotten pear."},
    ],
    "gsm8k-choices": [
        {
            "question": "Ann has 2 pens and buys 3. How many has she?",
            "choice_1": "4",
            "choice_2": "5",
            "choice_3": "6",
            "choice_4": "7",
            "original_answer": "5",
            "original_dataset": "gsm8k",
        },
        {"question": "Half of 8?", "choice_1": 3, "choice_2": 4, "choice_3": "", "answer": "choice_2"},
    ],
    "mmlu": [
        {"question": "What is 2 + 2?", "subject": "arithmetic", "choices": ["3", "4", "5", "6"], "answer": 1},
        {
            "id": "arithmetic-9",
            "question": "What is 3 + 3?",
            "choices": ["6", "7", "8", "9"],
            "gold": "0",
            "error_type": "ok",
            "corrected": None,
        },
        {
            "question": "What is 1 + 1?",
            "choices": ["1", "2", "3", "4"],
            "answer": "B",
            "correct_answer": None,
            "source": "",
        },
    ],
    "code-comprehension": [
        {
            "question": "What is printed?\n\nprint(len('ab') + 1)",
            "choices": ["2", "3", "4", "5"],
            "correct_answer": "3",
        },
    ],
}

WITHOUT_GOLD = {
    "own": [{"context": "a", "choices": ["b", "c"]}, {"context": "a", "choices": ["b", "c"], "gold": "d"}],
    "boolq": [{"passage": "p", "question": "q", "idx": 1, "label": -1}],
    "anli": [{"uid": "u", "premise": "p", "hypothesis": "h", "label": -1}],
    "arc": [{"id": "i", "question": "q", "choices": {"text": ["a", "b"], "label": ["A", "B"]}, "answerKey": ""}],
    "openbookqa": [
        {"id": "i", "question_stem": "q", "choices": {"text": ["a", "b"], "label": ["A", "B"]}, "answerKey": "E"}
    ],
    "hellaswag": [{"ind": 1, "activity_label": "a", "ctx": "c", "endings": ["d", "e"], "label": ""}],
    "race": [{"example_id": "x", "article": "a", "question": "q", "options": ["b", "c"], "answer": ""}],
    "winogrande": [{"qID": "x-1", "sentence": "a _ b", "option1": "c", "option2": "d", "answer": ""}],
    "socialiqa": [{"context": "c", "question": "q", "answerA": "a", "answerB": "b", "answerC": "d", "label": ""}],
    "multirc": [{"paragraph": "p", "question": "q", "answer": "a", "label": -1}],
    "ethics": [{"label": None, "scenario": "s"}],
    "gsm8k-choices": [{"question": "q", "choice_1": "3", "choice_2": "4", "answer": "2"}],
    "mmlu": [{"question": "q", "subject": "s", "choices": ["a", "b"], "answer": None}],
    "code-comprehension": [{"question": "q", "choices": ["a", "b"], "correct_answer": "c"}],
}

"""German Credit in words: UCI's names and codes, in a few words each.

Words for letters and numbers (A14) are those of UCI's documentation. It has none for the four features whose codes are
mere numbers: theirs are those of U. Groemping, "South German Credit Data" (2019). She
also finds that some of UCI's own words are wrong, those of the checking account among them: no lesson about lending
follows.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw

NAMES = {
    "Existing-Account-Status": "Checking account",
    "Month-Duration": "Duration",
    "Credit-History": "Credit history",
    "Purpose": "Purpose",
    "Credit-Amount": "Amount",
    "Savings-Account": "Savings",
    "Present-Employment": "Employment",
    "Instalment-Rate": "Instalments",
    "Sex": "Sex and status",
    "Guarantors": "Guarantors",
    "Residence": "Time at address",
    "Property": "Property",
    "Age": "Age",
    "Installment": "Other instalment plans",
    "Housing": "Housing",
    "Existing-Credits": "Credits at this bank",
    "Job": "Job",
    "Num-People": "People to support",
    "Telephone": "Telephone",
    "Foreign-Worker": "Foreign worker",
}
UNITS = {"Duration": "months", "Amount": "DM", "Age": "years"}
CODES: dict[str, dict[str, str]] = {
    "Existing-Account-Status": {
        "A11": "below 0 DM",
        "A12": "0 to 200 DM",
        "A13": "200 DM or more, or salary paid in for a year",
        "A14": "no checking account",
    },
    "Credit-History": {
        "A30": "no credits taken, or all paid back duly",
        "A31": "all credits at this bank paid back duly",
        "A32": "existing credits paid back duly so far",
        "A33": "delays in the past",
        "A34": "critical account, or credits elsewhere",
    },
    "Purpose": {
        "A40": "new car",
        "A41": "used car",
        "A42": "furniture or equipment",
        "A43": "radio or television",
        "A44": "domestic appliances",
        "A45": "repairs",
        "A46": "education",
        "A48": "retraining",
        "A49": "business",
        "A410": "others",
    },
    "Savings-Account": {
        "A61": "below 100 DM",
        "A62": "100 to 500 DM",
        "A63": "500 to 1,000 DM",
        "A64": "1,000 DM or more",
        "A65": "unknown, or no savings account",
    },
    "Present-Employment": {
        "A71": "unemployed",
        "A72": "less than 1 year",
        "A73": "1 to 4 years",
        "A74": "4 to 7 years",
        "A75": "7 years or more",
    },
    "Instalment-Rate": {
        "1": "35 % of income or more",
        "2": "25 to 35 % of income",
        "3": "20 to 25 % of income",
        "4": "below 20 % of income",
    },
    "Sex": {
        "A91": "male, divorced or separated",
        "A92": "female, divorced, separated or married",
        "A93": "male, single",
        "A94": "male, married or widowed",
    },
    "Guarantors": {
        "A101": "none",
        "A102": "co-applicant",
        "A103": "guarantor",
    },
    "Residence": {
        "1": "less than 1 year",
        "2": "1 to 4 years",
        "3": "4 to 7 years",
        "4": "7 years or more",
    },
    "Property": {
        "A121": "real estate",
        "A122": "building society savings or life insurance",
        "A123": "car or other",
        "A124": "unknown, or none",
    },
    "Installment": {
        "A141": "bank",
        "A142": "stores",
        "A143": "none",
    },
    "Housing": {
        "A151": "rent",
        "A152": "own",
        "A153": "for free",
    },
    "Existing-Credits": {
        "1": "1",
        "2": "2 or 3",
        "3": "4 or 5",
        "4": "6 or more",
    },
    "Job": {
        "A171": "unemployed, or unskilled and not resident",
        "A172": "unskilled and resident",
        "A173": "skilled employee or official",
        "A174": "management, self-employed, highly qualified",
    },
    "Num-People": {
        "1": "2 or fewer",
        "2": "3 or more",
    },
    "Telephone": {
        "A191": "none",
        "A192": "registered",
    },
    "Foreign-Worker": {
        "A201": "yes",
        "A202": "no",
    },
}


def german_in_words(frame: Any) -> Any:
    """German Credit with a name for each feature and words for each code, as a frame of the same library.

    Examples
    --------
    >>> from globece.datasets import load_german_credit
    >>> frame = german_in_words(load_german_credit().frame)
    >>> frame["Checking account"].tolist()[3:5]
    ['below 0 DM', 'below 0 DM']
    """
    table = nw.from_native(frame, eager_only=True)
    columns = [
        nw.new_series(name, [words[code] for code in table[code_name].to_list()], backend=table.implementation)
        if (words := CODES.get(code_name))
        else table[code_name].alias(name)
        for code_name, name in NAMES.items()
    ]
    return table.select(*columns).to_native()

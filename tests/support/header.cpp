// Nothing: the target this file belongs to holds the precompiled header of the tests.

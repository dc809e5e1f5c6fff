#include <gtest/gtest.h>

#include "text/clean.h"

namespace tandem {
namespace {

struct Expectation {
  const char* language;
  const char* text;
  const char* clean;
};

void PrintTo(const Expectation& expectation, std::ostream* out) { *out << expectation.text; }

class CleanBest : public testing::TestWithParam<Expectation> {};

TEST_P(CleanBest, SaysWhatAReaderSays) {
  EXPECT_EQ(clean_text(GetParam().text, GetParam().language), GetParam().clean);
}

INSTANTIATE_TEST_SUITE_P(
    Numbers, CleanBest,
    testing::Values(
        Expectation{"en", "In 12.50 seconds.", "in twelve point five zero seconds."},
        Expectation{"en", "It is 1,234,567 at -5 or 007.",
                    "it is one million, two hundred and thirty-four thousand, five hundred and "
                    "sixty-seven at minus five or zero zero seven."},
        Expectation{"en", "The 21st of 5kg", "the twenty-first of five kg"},
        Expectation{"en", "12345678901234567890 (1.2.3)",
                    "one two three four five six seven eight nine zero one two three four five six "
                    "seven eight nine zero (one.two.three)"},
        Expectation{"de", "Am 5. Mai waren es 12,5 oder 50.",
                    "am fünfte mai waren es zwölf komma fünf oder fünfzig."},
        Expectation{"de", "1 Million? 1.000.000!", "eins million? eine million!"},
        Expectation{"fr", "1\u00a0234\u202f567 le 1er",
                    "un million deux cent trente-quatre mille cinq cent "
                    "soixante-sept le premier"},
        Expectation{"it", "118 e 123 a 30°", "centodiciotto e centoventitré a trenta gradi"},
        Expectation{"cs", "Stalo se to 5. května 2021.",
                    "stalo se to pátý května dva tisíce dvacet jedna."},
        Expectation{"cs", "Bylo jich 5. Potom 123. den",
                    "bylo jich pět. potom stý dvacátý třetí den"},
        Expectation{"tr", "İSTANBUL'da 12,5 ve 661.021. IŞIK",
                    "istanbul'da oniki virgül beş ve altıyüzaltmışbirbinyirmibir. ışık"},
        Expectation{"tr", "5. sınıf", "beşinci sınıf"},
        Expectation{"hu", "A 3. nap 0,1234", "a harmadik nap nulla egész egy kettő három négy"},
        Expectation{"ru", "1-я, 3-го и 2-й, 1,5",
                    "первая, третьего и второй, одна целая пять десятых"},
        Expectation{"pl", "3,0 i 0,05", "trzy przecinek zero i zero przecinek zero pięć"},
        Expectation{"hi", "मेरे पास १४ और 1,23,456 हैं।",
                    "मेरे पास चौदह और एक लाख तेईस हज़ार चार सौ छप्पन हैं।"},
        Expectation{"hi", "12.5%", "बारह दशमलव पाँच प्रतिशत"},
        Expectation{"ar", "١٢٫٥", "اثنا عشر فاصلة خمسة"},
        Expectation{"ko", "100번째", "baeg beon-jjae"},
        Expectation{"zh-cn", "2024年有1500人", "er4ling2er4si4nian2you3yi1qian1wu3bai3ren2"}));

INSTANTIATE_TEST_SUITE_P(
    Money, CleanBest,
    testing::Values(Expectation{"en", "It cost £1.01, $2 and 3 €.",
                                "it cost one pound, one penny, two dollars and three euros."},
                    Expectation{"de", "Das macht 20,15€",
                                "das macht zwanzig euro und fünfzehn cent"},
                    Expectation{"pt", "25€ e £2", "vinte e cinco euros e duas libras"},
                    Expectation{"es", "£21 y $31", "veintiuna libras y treinta y un dólares"},
                    Expectation{"fr", "£1 et 80€", "une livre et quatre-vingts euros"},
                    Expectation{"it", "£1, 1€", "una sterlina, un euro"},
                    Expectation{"pl", "£5 i $2", "pięć funtów i dwa dolary"},
                    Expectation{"cs", "£1, $3 a 1€", "jedna libra, tři dolary a jedno euro"},
                    Expectation{"ru", "£21", "двадцать один фунт"},
                    Expectation{"nl", "£2,50", "twee pond, vijftig pence"},
                    Expectation{"tr", "$5 ve 2,50€", "beş dolar ve iki avro elli sent"},
                    Expectation{"hu", "$5", "öt dollár"}, Expectation{"ko", "5€", "o yulo"},
                    Expectation{"ar", "$5", "خمسة دولارات"}, Expectation{"hi", "$5", "पाँच डॉलर"},
                    Expectation{"en", "the € and 1.2.3$", "the euro and one.two.three dollar"},
                    Expectation{"zh-cn", "$20", "er4shi2mei3yuan2"}));

INSTANTIATE_TEST_SUITE_P(Words, CleanBest,
                         testing::Values(Expectation{"en", "  Dr. \"Who\"\t& Mrs. X ",
                                                     "doctor who and misess x"},
                                         Expectation{"en", "", ""}, Expectation{"en", " \n\t ", ""},
                                         Expectation{"ru", "Г-жа Иванова", "госпожа иванова"},
                                         Expectation{"pl", "Było p.m. rano", "było panim. rano"},
                                         Expectation{"ar", "5%", "خمسة في المئة"}));

}  // namespace
}  // namespace tandem

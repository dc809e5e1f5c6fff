#include "observe/doctor_fix.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "observe/doctor_yaml.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

constexpr const char* slow_config = R"(# My voice.
data:
  train_data: clips     # LJSpeech
  num_workers: 2        # laptop
  prefetch_buffer_size: 4
  use_tf_native_loading: no

training:
  stage: gpt
  enable_graph_mode: false  # was slow?
  epochs: 3
)";

ConfigFix fix_of(const TestFolder& folder, const std::string& text) {
  return plan_config_fix(folder.write("c.yaml", text), {.cores = 4});
}

// What the file says after the fix, with what was changed as a diff without its header.
std::string hunks_of(const ConfigFix& fix) {
  return fix.diff.empty() ? "" : fix.diff.substr(fix.diff.find("@@"));
}

}  // namespace

TEST(DoctorFix, ChangesValuesAndNothingElse) {
  const TestFolder folder;
  const ConfigFix fix = fix_of(folder, slow_config);
  EXPECT_EQ(fix.after, R"(# My voice.
data:
  train_data: clips     # LJSpeech
  num_workers: 8        # laptop
  prefetch_buffer_size: 16
  use_tf_native_loading: true

training:
  stage: gpt
  enable_graph_mode: true  # was slow?
  epochs: 3
)");
  EXPECT_EQ(hunks_of(fix), R"(@@ -1,11 +1,11 @@
 # My voice.
 data:
   train_data: clips     # LJSpeech
-  num_workers: 2        # laptop
-  prefetch_buffer_size: 4
-  use_tf_native_loading: no
+  num_workers: 8        # laptop
+  prefetch_buffer_size: 16
+  use_tf_native_loading: true
 
 training:
   stage: gpt
-  enable_graph_mode: false  # was slow?
+  enable_graph_mode: true  # was slow?
   epochs: 3
)");
  EXPECT_TRUE(fix.diff.starts_with("--- " + (folder / "c.yaml").string() + "\n+++ "));
  ASSERT_EQ(fix.reasons.size(), 4u);
  EXPECT_EQ(
      fix.reasons[0],
      "line 4: `data.num_workers` is 2, under 8: reading and decoding may not keep up, now 8");
  EXPECT_EQ(contents(folder / "c.yaml"), slow_config) << "planning changed the file";
}

TEST(DoctorFix, WhatIsWellStaysAsItIs) {
  const TestFolder folder;
  const ConfigFix fix = fix_of(folder, "data:\n  num_workers: 8\ntraining: {epochs: 2}\n");
  EXPECT_EQ(fix.diff, "");
  EXPECT_EQ(fix.before, fix.after);
}

TEST(DoctorFix, UnknownKeysAreRenamedOrMadeComments) {
  const TestFolder folder;
  const ConfigFix fix = fix_of(folder, R"(training:
  epohcs: 3
  preprocessing_mode: cached  # of the originals
  nonsense:
    deep: 1

    deeper: 2
  stage: gpt
)");
  EXPECT_EQ(fix.after, R"(training:
  epochs: 3
  # preprocessing_mode: cached  # of the originals  # tandem doctor: there is no such setting
  # nonsense:  # tandem doctor: there is no such setting
    # deep: 1

    # deeper: 2
  stage: gpt
)");
  folder.write("after.yaml", fix.after);
  EXPECT_EQ(Config::from_yaml((folder / "after.yaml").string()).training.epochs, 3);
}

TEST(DoctorFix, NamesAtTheTopAreMendedToo) {
  const TestFolder folder;
  EXPECT_EQ(fix_of(folder, "epohcs: 3\n").after, "epochs: 3\n");
  EXPECT_EQ(fix_of(folder, "training.epohcs: 3\n").after, "training.epochs: 3\n");
  // What is there already is not said twice.
  EXPECT_EQ(fix_of(folder, "epochs: 2\nepohcs: 3\n").after,
            "epochs: 2\n# epohcs: 3  # tandem doctor: there is no such setting; near is epochs\n");
}

TEST(DoctorFix, ValuesThatDoNotFitGetTheNearestOrTheDefault) {
  const TestFolder folder;
  const ConfigFix fix = fix_of(folder,
                               "training.precision: fp23\n"
                               "data:\n"
                               "  batch_size: -4\n"
                               "  num_workers: many\n"
                               "  pin_memory:\n");
  EXPECT_EQ(fix.after,
            "training.precision: fp32\n"
            "data:\n"
            "  batch_size: 16\n"
            "  num_workers: 16\n"
            "  # pin_memory:  # tandem doctor: it has no value\n");
  EXPECT_TRUE(contains(fix.reasons[1], "not `-4`: set to the default, 16")) << fix.reasons[1];
}

TEST(DoctorFix, AKeyGivenTwiceKeepsItsFirstValue) {
  const TestFolder folder;
  const ConfigFix fix = fix_of(folder, "epochs: 3\nepochs: 4\n");
  EXPECT_EQ(fix.after,
            "epochs: 3\n# epochs: 4  # tandem doctor: it is given twice, and the first one "
            "counts\n");
}

TEST(DoctorFix, KeepsStylesLineEndsAndAMissingLastOne) {
  const TestFolder folder;
  const ConfigFix braces = fix_of(folder, "data: {num_workers: 2, buffer_size: 3}  # short\n");
  EXPECT_EQ(braces.after, "data: {num_workers: 8, buffer_size: 16}  # short\n");
  const ConfigFix windows = fix_of(folder, "num_workers: \"2\"\r\nepochs: 3\r\n");
  EXPECT_EQ(windows.after, "num_workers: 16\r\nepochs: 3\r\n");
  const ConfigFix open = fix_of(folder, "epochs: 3\nnum_workers: 2");
  EXPECT_EQ(open.after, "epochs: 3\nnum_workers: 8");
  EXPECT_TRUE(open.diff.ends_with(
      "-num_workers: 2\n\\ No newline at end of file\n+num_workers: 8\n\\ No newline at end of "
      "file\n"))
      << open.diff;
}

TEST(DoctorFix, ContradictionsWithOneAnswerAreMended) {
  const TestFolder folder;
  const ConfigFix fix = fix_of(folder,
                               "data:\n  pin_memory: false\n"
                               "training:\n  enable_eager_debug: true\n  enable_graph_mode: true\n"
                               "  max_steps: 100\n  warmup_steps: 500\n");
  EXPECT_EQ(fix.after,
            "data:\n  pin_memory: true\n"
            "training:\n  enable_eager_debug: false\n  enable_graph_mode: true\n"
            "  max_steps: 100\n  warmup_steps: 5\n");
}

TEST(DoctorFix, WhatNobodyCanDecideIsRefusedAndNothingChanges) {
  const TestFolder folder;
  const Thrown two =
      thrown_by([&] { fix_of(folder, "data:\n  buffer_size: 20\n  prefetch_buffer_size: 30\n"); });
  EXPECT_EQ(two.kind, "config");
  EXPECT_TRUE(two.sentence.starts_with("this cannot be mended line by line: ")) << two.sentence;
  EXPECT_TRUE(contains(two.sentence, (folder / "c.yaml").string() + ":2")) << two.sentence;
  const Thrown broken = thrown_by([&] { fix_of(folder, "data:\n  train_data: \"open\n"); });
  EXPECT_EQ(broken.kind, "config");
  EXPECT_TRUE(contains(broken.sentence, "is not valid YAML")) << broken.sentence;
  const Thrown none = thrown_by([&] { plan_config_fix((folder / "none.yaml").string(), {}); });
  EXPECT_EQ(none.kind, "io");
}

TEST(DoctorFix, KeepsABackupAndThePermissions) {
  const TestFolder folder;
  const ConfigFix fix = fix_of(folder, slow_config);
  const std::string file = (folder / "c.yaml").string();
  ::chmod(file.c_str(), 0640);
  const std::string backup = write_config_fix(file, fix);
  EXPECT_TRUE(backup.starts_with(file + ".bak-2")) << backup;
  EXPECT_EQ(contents(backup), slow_config);
  EXPECT_EQ(contents(file), fix.after);
  for (const std::string& path : {file, backup}) {
    struct stat about {};
    ASSERT_EQ(::stat(path.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0640u) << path;
  }
  EXPECT_EQ(plan_config_fix(file, {.cores = 4}).diff, "") << "a second fix finds more to change";
  // Two in one second do not overwrite each other.
  put(file, slow_config);
  EXPECT_NE(write_config_fix(file, fix), backup);
}

TEST(DoctorFix, ALinkStaysALink) {
  const TestFolder folder;
  const std::string real = folder.write("real/c.yaml", slow_config);
  std::filesystem::create_symlink("real/c.yaml", folder / "link.yaml");
  const std::string link = (folder / "link.yaml").string();
  const std::string backup = write_config_fix(link, plan_config_fix(link, {.cores = 4}));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_NE(contents(real), slow_config);
  EXPECT_EQ(contents(backup), slow_config);
}

TEST(DoctorFix, AReadOnlyFileIsOneSentence) {
  const TestFolder folder;
  const ConfigFix fix = fix_of(folder, slow_config);
  const std::string file = (folder / "c.yaml").string();
  ::chmod(file.c_str(), 0444);
  const Thrown thrown = thrown_by([&] { write_config_fix(file, fix); });
  EXPECT_EQ(thrown.kind, "io");
  EXPECT_EQ(thrown.sentence, "`" + file + "` may not be written, so it was not changed");
  EXPECT_EQ(thrown.hint, "chmod u+w it, or copy it and name the copy with --config");
  EXPECT_EQ(contents(file), slow_config);
}

TEST(DoctorFix, AFileChangedMeanwhileIsLeftAlone) {
  const TestFolder folder;
  const ConfigFix fix = fix_of(folder, slow_config);
  put(folder / "c.yaml", "epochs: 9\n");
  const Thrown thrown = thrown_by([&] { write_config_fix((folder / "c.yaml").string(), fix); });
  EXPECT_TRUE(contains(thrown.sentence, "was changed by somebody meanwhile")) << thrown.sentence;
  EXPECT_EQ(contents(folder / "c.yaml"), "epochs: 9\n");
}

TEST(DoctorYaml, FindsNamesWithTheirSections) {
  const auto lines = split_lines(
      "a: 1\nb:\n  c: 'x # y'  # note\n  d: |\n    e: 2\n  f:\n    - g: 3\n\"h\": [1,\n  2]\ni.j: "
      "4\n");
  std::vector<std::string> found;
  for (const YamlLine& line : scan_yaml(lines))
    found.push_back(line.path + "=" + line.value + (line.plain ? "" : "!"));
  EXPECT_EQ(found, (std::vector<std::string>{"a=1", "b=", "b.c='x # y'", "b.d=|!", "b.f=", "h=[1,!",
                                             "i.j=4"}));
}

TEST(DoctorYaml, FarChangesAreHunksOfTheirOwn) {
  std::vector<std::string> before;
  for (int i = 0; i < 30; ++i) before.push_back(std::to_string(i) + "\n");
  auto after = before;
  after[2] = "x\n";
  after[20] = "y\n";
  EXPECT_EQ(unified_diff(before, after, "f"),
            "--- f\n+++ f\n@@ -1,6 +1,6 @@\n 0\n 1\n-2\n+x\n 3\n 4\n 5\n@@ -18,7 +18,7 @@\n 17\n "
            "18\n 19\n-20\n+y\n 21\n 22\n 23\n");
  EXPECT_EQ(unified_diff(before, before, "f"), "");
}

}  // namespace tandem::tests

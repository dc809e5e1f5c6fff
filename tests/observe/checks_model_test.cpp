#include "observe/checks_model.h"

#include <gtest/gtest.h>

#include "support/tiny_musicgen.h"
#include "support/tiny_xtts.h"
#include "util/scratch.h"

namespace tandem::tests {
namespace {

namespace fs = std::filesystem;

std::map<std::string, Check> model_checks(const fs::path& folder) {
  std::map<std::string, Check> all;
  for (const Check& check : check_model_folder(folder)) all[check.name] = check;
  return all;
}

std::string copied_musicgen(const TestFolder& folder) {
  for (const auto& entry : fs::directory_iterator(tiny_musicgen_folder()))
    folder.write("music/" + entry.path().filename().string(), contents(entry.path()));
  return (folder / "music").string();
}

void cut(const fs::path& file, double share) {
  fs::resize_file(file, static_cast<uintmax_t>(static_cast<double>(fs::file_size(file)) * share));
}

}  // namespace

TEST(ModelChecks, AWholeXttsFolderPasses) {
  const TestFolder folder;
  const auto checks = model_checks(write_tiny_xtts(folder));
  EXPECT_EQ(checks.at("model").verdict, Verdict::pass) << checks.at("model").found;
  EXPECT_TRUE(contains(checks.at("model").found, "XTTS v2, 2 layers, width 64"));
  EXPECT_EQ(checks.at("weights").verdict, Verdict::pass) << checks.at("weights").found;
  EXPECT_TRUE(checks.at("weights").found.starts_with("`model.safetensors`, safetensors, "));
  EXPECT_EQ(checks.at("hashes").found, "none written down beside the files");
}

TEST(ModelChecks, AHalfCopiedXttsFolderFails) {
  for (const char* file : {"model.safetensors", "speakers.safetensors", "vocab.json"}) {
    const TestFolder folder;
    const std::string model = write_tiny_xtts(folder);
    cut(fs::path(model) / file, 0.5);
    const auto checks = model_checks(model);
    EXPECT_EQ(checks.at("model").verdict, Verdict::fail) << file;
    EXPECT_TRUE(contains(checks.at("model").found, file)) << checks.at("model").found;
    EXPECT_FALSE(checks.at("model").advice.empty());
  }
  for (const char* file : {"model.safetensors", "config.json", "vocab.json"}) {
    const TestFolder folder;
    const std::string model = write_tiny_xtts(folder);
    fs::remove(fs::path(model) / file);
    const Check check = model_checks(model).at("model");
    EXPECT_EQ(check.verdict, Verdict::fail) << file;
    EXPECT_TRUE(contains(check.found, "a complete folder holds")) << check.found;
  }
  EXPECT_TRUE(contains(model_checks("/no/such/model").at("model").found, "there is no model"));
}

TEST(ModelChecks, MissingPartsAreNamed) {
  const TestFolder folder;
  const std::string model = write_tiny_xtts(folder);
  auto file = read_safetensors(fs::path(model) / "model.safetensors");
  NamedTensors left;
  for (const auto& [name, tensor] : file.tensors)
    if (!name.starts_with("gpt.gpt.h.1.") && !name.starts_with("hifigan_decoder.waveform"))
      left.emplace_back(name, tensor);
  put(fs::path(model) / "model.safetensors", format_safetensors(left, {}));
  const Check check = model_checks(model).at("weights");
  EXPECT_EQ(check.verdict, Verdict::fail);
  EXPECT_TRUE(check.found.ends_with("; missing: the vocoder, layer 1 of the GPT")) << check.found;
}

TEST(ModelChecks, MusicgenFoldersAreChecked) {
  const TestFolder folder;
  const std::string model = copied_musicgen(folder);
  const auto whole = model_checks(model);
  EXPECT_EQ(whole.at("model").verdict, Verdict::pass) << whole.at("model").found;
  EXPECT_TRUE(contains(whole.at("model").found, "MusicGen, weights in 1 file"));
  EXPECT_EQ(whole.at("weights").verdict, Verdict::pass) << whole.at("weights").found;
  cut(fs::path(model) / "model.safetensors", 0.9);
  EXPECT_EQ(model_checks(model).at("model").verdict, Verdict::fail);
  fs::remove(fs::path(model) / "model.safetensors");
  EXPECT_TRUE(contains(model_checks(model).at("model").found, "has no weights"));
}

TEST(ModelChecks, AListOfHashesIsCompared) {
  const TestFolder folder;
  const std::string model = copied_musicgen(folder);
  const std::string bytes = contents(model + "/model.safetensors");
  const std::string right = digest_of(bytes, DigestKind::sha256);
  put(model + "/SHA256SUMS", right + "  model.safetensors\n");
  EXPECT_TRUE(model_checks(model).at("hashes").found.starts_with("1 file is right (SHA256SUMS, "));
  std::string other = bytes;
  other.back() ^= 1;  // still a well-formed file
  put(model + "/model.safetensors", other);
  const Check check = model_checks(model).at("hashes");
  EXPECT_EQ(check.verdict, Verdict::fail);
  EXPECT_TRUE(contains(check.found, "SHA256SUMS says " + right.substr(0, 12))) << check.found;
  EXPECT_EQ(check.advice, "copy or download these files again");
}

TEST(KnownHashes, AreFoundWherePublishersLeaveThem) {
  const TestFolder folder;
  const std::string sha(64, 'a'), other(64, 'b'), md5(32, 'c');
  folder.write("m/model.pth", "x");
  folder.write("m/vocab.json", "y");
  folder.write("m/model.pth.md5", md5 + "\n");
  folder.write("m/md5sums.txt", md5 + " *vocab.json\nnot a hash  vocab.json\n");
  folder.write("m/hash.md5", md5);  // of a release, not of a file
  folder.write("m/.cache/huggingface/download/vocab.json.metadata", "commit\n" + sha + "\n1.5\n");
  folder.write("m/.cache/huggingface/download/model.pth.metadata", "commit\n" + md5 + "\n1.5\n");
  folder.write("blobs/" + other, "z");
  fs::create_symlink("../blobs/" + other, folder / "m/weights.bin");
  folder.write("outside.bin", "w");
  folder.write("m/SHA256SUMS", sha + "  ../outside.bin\n" + sha + "  gone.bin\n");
  std::vector<std::string> found;
  for (const KnownHash& hash : known_hashes(folder / "m"))
    found.push_back(hash.file.filename().string() + " " + hash.digest.substr(0, 1) + " " +
                    hash.from);
  EXPECT_EQ(found,
            (std::vector<std::string>{"vocab.json c md5sums.txt", "model.pth c model.pth.md5",
                                      "weights.bin b the cache's file name",
                                      "vocab.json a the download's record"}));
}

// FIPS 180-4 and RFC 1321 give these.
TEST(Digests, AreThoseOfTheStandards) {
  EXPECT_EQ(digest_of("abc", DigestKind::sha256),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest_of("", DigestKind::sha256),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(
      digest_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", DigestKind::sha256),
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest_of(std::string(1000000, 'a'), DigestKind::sha256),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(digest_of("", DigestKind::md5), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(digest_of("message digest", DigestKind::md5), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(digest_of("12345678901234567890123456789012345678901234567890123456789012345678901234"
                      "567890",
                      DigestKind::md5),
            "57edf4a22be3c955ac49da2e2107b67a");
  const TestFolder folder;
  const std::string text(3 * (1 << 20) + 17, 'q');
  EXPECT_EQ(digest_of_file(folder.write("f", text), DigestKind::sha256),
            digest_of(text, DigestKind::sha256));
}

}  // namespace tandem::tests

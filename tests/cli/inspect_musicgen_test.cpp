#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/program.h"
#include "support/temporary_folder.h"
#include "support/tiny_musicgen.h"

namespace tandem {

TEST(InspectMusicgen, TellsWhatAFolderIs) {
  const ProgramRun run = run_program({"inspect", tiny_musicgen_folder()});
  ASSERT_EQ(run.code, 0) << run.err;
  for (const char* line :
       {"is           MusicGen, mono: 2 layers, width 32, 4 heads, 4 codebooks of 32 codes, 2048 "
        "positions\n",
        "text         T5 of 2 layers, width 16, 2 heads, 112 tokens\n",
        "sound        16000 Hz, 320 samples a frame, 50 frames a second\n",
        "sampling     guidance_scale 3, temperature 1, top_k 50, top_p 1, max_length 1500\n",
        "is           MusicGen model, safetensors, ", "parameters   53,960\n"})
    EXPECT_NE(run.out.find(line), std::string::npos) << line << "\nin\n" << run.out;
}

TEST(InspectMusicgen, GivesAFolderAsOneJsonDocument) {
  const ProgramRun run = run_program({"inspect", tiny_musicgen_folder(), "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out, nullptr, false);
  EXPECT_EQ(json["kind"], "MusicGen folder");
  EXPECT_EQ(json["decoder"]["width"], 32);
  EXPECT_EQ(json["codec"]["samples_a_frame"], 320);
  EXPECT_EQ(json["sampling"]["top_k"], 50);
  ASSERT_EQ(json["files"].size(), 1u);
  EXPECT_EQ(json["files"][0]["kind"], "MusicGen model");
  const auto parts = json["files"][0]["parts"];
  EXPECT_EQ(parts.size(), 3u);
  int64_t sum = 0;
  for (const char* part : {"text encoder", "decoder", "codec"})
    sum += parts[part]["parameters"].get<int64_t>();
  EXPECT_EQ(sum, 53960);  // as transformers counts them
}

TEST(InspectMusicgen, RefusesAMelodyModelByName) {
  const TestFolder folder;
  folder.write("config.json", R"({"model_type": "musicgen_melody"})");
  const ProgramRun run = run_program({"inspect", folder.path().string()});
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.err.find("is a melody model (musicgen_melody), which Tandem cannot generate with"),
            std::string::npos)
      << run.err;
}

}  // namespace tandem

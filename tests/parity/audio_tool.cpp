// For tests/parity: reads and writes sound files with Tandem.
//   audio_tool info FILE                     one line of JSON
//   audio_tool decode FILE FIRST COUNT       float32 mono on standard output; COUNT -1: to the end
//   audio_tool decode-sndfile FILE FIRST COUNT   the same, WAV through libsndfile too
//   audio_tool write FILE wav16|wav32|flac CHANNELS RATE    float32 from standard input
//   audio_tool bench FOLDER ROUNDS           files/s of opening and reading every file, one thread
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "audio/file/audio_file.h"
#include "audio/file/write_audio.h"

namespace {

void print_info(const std::string& path) {
  const auto file = tandem::open_audio({.path = path});
  const tandem::AudioInfo& info = file->info();
  std::cout << nlohmann::json{{"frames", info.frames},
                              {"channels", info.channels},
                              {"sample_rate", info.sample_rate},
                              {"format", info.format},
                              {"native", info.native}}
                   .dump()
            << "\n";
}

void decode(const std::string& path, int64_t first, int64_t count, bool native) {
  const auto file = tandem::open_audio({.path = path}, {.native = native});
  if (count < 0) count = file->info().frames - first;
  std::vector<float> samples(static_cast<size_t>(count));
  file->read_mono(first, count, samples.data());
  std::fwrite(samples.data(), sizeof(float), samples.size(), stdout);
}

void write(const std::string& path, const std::string& format, int channels, int rate) {
  const std::string bytes(std::istreambuf_iterator<char>(std::cin), {});
  const std::span samples(reinterpret_cast<const float*>(bytes.data()), bytes.size() / 4);
  if (format == "flac") {
    tandem::write_flac(path, samples, channels, rate);
  } else {
    tandem::write_wav(
        path, samples, channels, rate,
        format == "wav16" ? tandem::SampleFormat::pcm16 : tandem::SampleFormat::float32);
  }
}

void bench(const std::string& folder, int rounds) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path().string());
  }
  std::vector<float> samples;
  const auto start = std::chrono::steady_clock::now();
  for (int round = 0; round < rounds; ++round) {
    for (const std::string& path : paths) {
      const auto file = tandem::open_audio({.path = path});
      const auto frames = static_cast<size_t>(file->info().frames);
      if (samples.size() < frames) samples.resize(frames);
      file->read_mono(0, file->info().frames, samples.data());
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::cout << static_cast<double>(paths.size()) * rounds / took.count() << "\n";
}

int run(const std::vector<std::string>& words) {
  if (words.size() == 2 && words[0] == "info") {
    print_info(words[1]);
  } else if (words.size() == 4 && words[0].starts_with("decode")) {
    decode(words[1], std::stoll(words[2]), std::stoll(words[3]), words[0] == "decode");
  } else if (words.size() == 5 && words[0] == "write") {
    write(words[1], words[2], std::stoi(words[3]), std::stoi(words[4]));
  } else if (words.size() == 3 && words[0] == "bench") {
    bench(words[1], std::stoi(words[2]));
  } else {
    return 2;
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run({words + 1, words + count});
  } catch (const tandem::AudioError& error) {
    std::cerr << tandem::to_string(error.fault()) << ": " << error.what() << "\n";
    return tandem::exit_code(error.kind());
  } catch (const tandem::Error& error) {
    std::cerr << error.what() << "\n";
    return tandem::exit_code(error.kind());
  }
}

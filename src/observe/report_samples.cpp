#include "observe/report_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "observe/report_html.h"
#include "observe/sample_files.h"
#include "util/atomic_file.h"
#include "util/text.h"

namespace tandem {
namespace {

constexpr size_t most_text = 2000;  // bytes

// As long as they fit: a picture or a sound that does not is left out, and counted.
class Embedding {
 public:
  explicit Embedding(size_t room) : room_(room) {}
  std::string data_of(const std::filesystem::path& path, const char* type) {
    std::error_code error;
    const auto size = path.empty() ? 0 : std::filesystem::file_size(path, error);
    if (path.empty() || error || size == 0) return "";
    if (size > room_) {
      ++left_out_;
      return "";
    }
    room_ -= size;
    return fmt::format("data:{};base64,{}", type, base64(read_file(path)));
  }
  size_t left_out() const { return left_out_; }

 private:
  size_t room_;
  size_t left_out_ = 0;
};

std::string take_html(const SampleFiles& sample, Embedding& embedding) {
  std::string html = fmt::format("<p class=\"step\">after step {}</p>\n", sample.step);
  if (!sample.txt.empty()) {
    const std::string text = trim(read_file(sample.txt)).substr(0, most_text);
    html += fmt::format("<p>{}</p>\n", html_escaped(text));
  }
  if (const std::string png = embedding.data_of(sample.png, "image/png"); !png.empty()) {
    html += fmt::format("<img alt=\"Spectrogram of {} after step {}\" src=\"{}\">\n",
                        html_escaped(sample.name), sample.step, png);
  }
  if (const std::string wav = embedding.data_of(sample.wav, "audio/wav"); !wav.empty())
    html += fmt::format("<audio controls preload=\"none\" src=\"{}\"></audio>\n", wav);
  return "<div class=\"take\">\n" + html + "</div>\n";
}

}  // namespace

std::string samples_html(const std::filesystem::path& run, const ReportOptions& options) {
  std::vector<SampleFiles> samples = find_samples(run);
  if (samples.empty()) return "";
  std::ranges::stable_sort(samples, std::greater<>{}, &SampleFiles::step);
  std::set<int64_t, std::greater<>> steps;
  for (const SampleFiles& sample : samples) steps.insert(sample.step);
  Embedding embedding(options.most_sample_bytes);
  std::map<std::string, std::vector<std::string>> takes;  // newest first
  size_t too_old = 0;
  for (const SampleFiles& sample : samples) {
    const auto newer = std::distance(steps.begin(), steps.find(sample.step));
    if (static_cast<size_t>(newer) >= options.most_steps) {
      ++too_old;
      continue;
    }
    takes[sample.name].push_back(take_html(sample, embedding));
  }
  std::string html = "<div class=\"samples\">\n";
  for (const auto& [name, of_name] : takes) {
    html += fmt::format("<article class=\"sample\">\n<h3>{}</h3>\n{}", html_escaped(name),
                        of_name.front());
    if (of_name.size() > 1) {
      html += fmt::format("<details><summary>{} earlier</summary>\n", of_name.size() - 1);
      for (size_t i = 1; i < of_name.size(); ++i) html += of_name[i];
      html += "</details>\n";
    }
    html += "</article>\n";
  }
  html += "</div>\n";
  if (too_old + embedding.left_out() > 0)
    html += "<p class=\"note\">More of them are in the folder <code>samples</code>.</p>\n";
  return html;
}

}  // namespace tandem

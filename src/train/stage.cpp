#include "train/stage.h"

#include <fmt/format.h>

#include "tandem/config.h"
#include "tandem/error.h"
#include "train/stages/byte_stage.h"
#include "train/stages/decoder_stage.h"
#include "train/stages/dvae_stage.h"
#include "train/stages/gpt_stage.h"

namespace tandem {

std::unique_ptr<Stage> make_stage(const Config& config, LogicalDevice& data_device,
                                  const std::string& bad_list) {
  const std::string& stage = config.training.stage;
  if (stage == "bytes") return std::make_unique<ByteStage>(config);
  if (stage == "dvae") return std::make_unique<DvaeStage>(config, data_device, bad_list);
  if (stage == "gpt") return std::make_unique<GptStage>(config, data_device, bad_list);
  if (stage == "decoder") return std::make_unique<DecoderStage>(config, data_device, bad_list);
  throw Error(ErrorKind::config, fmt::format("training.stage `{}` is several stages", stage));
}

}  // namespace tandem

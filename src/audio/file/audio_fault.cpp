#include "audio/file/audio_file.h"

namespace tandem {

const char* to_string(AudioFault fault) {
  switch (fault) {
    case AudioFault::missing: return "missing";
    case AudioFault::unreadable: return "unreadable";
    case AudioFault::empty: return "empty";
    case AudioFault::not_audio: return "not audio";
    case AudioFault::truncated: return "truncated";
    case AudioFault::not_finite: return "not finite";
    case AudioFault::too_long: return "too long";
    case AudioFault::bad_channels: return "bad channels";
    case AudioFault::bad_rate: return "bad rate";
    case AudioFault::too_short: return "too short";
    case AudioFault::changed: return "changed";
  }
  return "unknown";
}

AudioError::AudioError(AudioFault fault, const std::string& sentence)
    : Error(fault == AudioFault::missing || fault == AudioFault::unreadable ? ErrorKind::io
                                                                            : ErrorKind::data,
            sentence),
      fault_(fault) {}

}  // namespace tandem

// Hears which part of making a batch of clips begins and ends, for whoever measures it. Nothing is
// asked where no observer is given.
//
// Captions and decoding come from the thread that calls the engine, sound and what follows from the
// engine's own; turns begin on one of them and end on the other, the last in `finish`. Those of one
// batch follow each other and do not nest; who lets batches follow each other without `finish`
// hears parts of two at once, and must not listen.
#pragma once

namespace tandem {

class Stream;

// In the order of a batch. Sound, copy and hand-over come again for every group of clips.
enum class MusicPart {
  captions,   // read by the text encoder
  decoding,   // all steps, until the codes are on the host
  sound,      // of codes, by the codec
  copy,       // of the sound to the host
  hand_over,  // to the caller, who writes it
  turn,       // until the other thread goes on: before the sound, and behind all of it
};

class MusicObserver {
 public:
  virtual ~MusicObserver() = default;
  // `stream`: where the part's work is queued; it may only be queued when the part ends.
  virtual void begin(MusicPart part, Stream& stream) = 0;
  virtual void end(Stream& stream) = 0;
};

// A part, for as long as this lives.
class MusicMark {
 public:
  MusicMark(MusicObserver* observer, MusicPart part, Stream& stream)
      : observer_(observer), stream_(stream) {
    if (observer_) observer_->begin(part, stream_);
  }
  ~MusicMark() {
    if (observer_) observer_->end(stream_);
  }
  MusicMark(const MusicMark&) = delete;
  MusicMark& operator=(const MusicMark&) = delete;

 private:
  MusicObserver* observer_;
  Stream& stream_;
};

}  // namespace tandem

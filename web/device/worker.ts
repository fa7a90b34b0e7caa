// The worker that will own the reader's database and models; so far it says that this build has none.
export {};

self.onmessage = () => self.postMessage({ words: "This build holds no device yet." });

package kubernetes

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sandbox/core/fault"
)

// authoritySecret is the Secret with the keys that all programs on a namespace share. No
// pod of a box mounts it.
const authoritySecret = "sandbox-authority"

// The names in Secrets. A box's Secret has those of its own key pair, and the
// certificate of the authority.
const (
	fileCA    = "ca.crt"
	fileCAKey = "ca.key"
	fileCert  = "tls.crt"
	fileKey   = "tls.key"
)

const (
	// lifetime is how long certificates are good for: longer than any box lives.
	lifetime = 10 * 365 * 24 * time.Hour
	// skew is how far the clocks of two nodes may differ.
	skew = 24 * time.Hour
)

// authority signs the certificates of boxes, and is a client that boxes know.
type authority struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	pem    []byte // of cert
	pool   *x509.CertPool
	client tls.Certificate
}

// authority returns the keys of the namespace, which the first program makes.
func (e *Engine) authority(ctx context.Context) (*authority, error) {
	s, err := e.api.secrets.Get(ctx, authoritySecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		fresh, failed := newAuthority()
		if failed != nil {
			return nil, failed
		}
		s, err = e.api.secrets.Create(ctx, fresh, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // another program was faster
			s, err = e.api.secrets.Get(ctx, authoritySecret, metav1.GetOptions{})
		}
	}
	if err != nil {
		return nil, failure(err, "get the keys of the namespace %s", e.conn.namespace)
	}
	a, err := readAuthority(s.Data)
	return a, fault.Wrap(fault.Storage, err, "the Secret %s is damaged: remove it, which ends the use of the boxes that are there", authoritySecret)
}

func newAuthority() (*corev1.Secret, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "make a key")
	}
	ca := template("sandbox authority")
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "make a certificate")
	}
	private, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	if ca, err = x509.ParseCertificate(der); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "make a certificate")
	}
	a := &authority{cert: ca, key: key, pem: encodeCert(der)}
	cert, certKey, err := a.issue("sandbox engine", x509.ExtKeyUsageClientAuth)
	if err != nil {
		return nil, err
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: authoritySecret},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{fileCA: a.pem, fileCAKey: private, fileCert: cert, fileKey: certKey},
	}, nil
}

func readAuthority(data map[string][]byte) (*authority, error) {
	signer, err := tls.X509KeyPair(data[fileCA], data[fileCAKey])
	if err != nil {
		return nil, err
	}
	client, err := tls.X509KeyPair(data[fileCert], data[fileKey])
	if err != nil {
		return nil, err
	}
	key, ok := signer.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the key is of type %T", signer.PrivateKey)
	}
	pool := x509.NewCertPool()
	pool.AddCert(signer.Leaf)
	return &authority{cert: signer.Leaf, key: key, pem: data[fileCA], pool: pool, client: client}, nil
}

// issue returns a new key pair with a name, as PEM.
func (a *authority) issue(name string, usage x509.ExtKeyUsage) (cert, private []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Internal, err, "make a key")
	}
	if cert, err = a.certify(name, usage, &key.PublicKey); err != nil {
		return nil, nil, err
	}
	private, err = encodeKey(key)
	return cert, private, err
}

// certify returns a certificate that a key has a name, as PEM.
func (a *authority) certify(name string, usage x509.ExtKeyUsage, key *ecdsa.PublicKey) ([]byte, error) {
	t := template(name)
	t.DNSNames, t.ExtKeyUsage, t.KeyUsage = []string{name}, []x509.ExtKeyUsage{usage}, x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key, a.key)
	return encodeCert(der), fault.Wrap(fault.Internal, err, "make a certificate")
}

func template(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)) // never fails
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-skew), NotAfter: now.Add(lifetime)}
}

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), fault.Wrap(fault.Internal, err, "make a key")
}

// config returns the settings of a connection to the init in a pod.
func (a *authority) config(pod *corev1.Pod) *tls.Config {
	c := &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: a.pool, ServerName: pod.Name, Certificates: []tls.Certificate{a.client},
		DynamicRecordSizingDisabled: true, // see package link
	}
	if vouched := pod.Annotations[annotationCertificate]; vouched != "" {
		// The init has no certificate, and the one for its key is here.
		c.InsecureSkipVerify = true //nolint:gosec // VerifyConnection verifies more
		c.VerifyConnection = func(s tls.ConnectionState) error { return a.verify(vouched, pod.UID, s.PeerCertificates[0].PublicKey) }
	}
	return c
}

// vouch returns a certificate that a pod's init has a key which it has made itself.
func (a *authority) vouch(pod types.UID, key *ecdsa.PublicKey) ([]byte, error) {
	return a.certify(string(pod), x509.ExtKeyUsageServerAuth, key)
}

// verify returns nil if a certificate of the authority says that a pod's init has a key.
func (a *authority) verify(vouched string, pod types.UID, key any) error {
	block, _ := pem.Decode([]byte(vouched))
	if block == nil {
		return fmt.Errorf("the annotation %s is damaged", annotationCertificate)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("the annotation %s is damaged: %w", annotationCertificate, err)
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: a.pool, DNSName: string(pod)}); err != nil {
		return err
	}
	if known, ok := cert.PublicKey.(*ecdsa.PublicKey); !ok || !known.Equal(key) {
		return errors.New("it has another key than the pod has told")
	}
	return nil
}
